package scheme

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/p4/format"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A Program is the program of one switch role. It may be shared and must not be
// copied.
type Program struct {
	Name     string // name of the scheme
	Arch     string // one of codegen.Archs
	Manifest manifest.Manifest
	Digest   string // digest of the text: programs with the same digest behave the same
	// Tables is set if this is a model without a program: the program whose tables its switches
	// have. nil: this is a program.
	Tables *Program

	compile  func() (text []byte, compiled *p4.Program, err error)
	once     sync.Once
	text     []byte
	compiled *p4.Program
	err      error
}

// New returns a program of a Source. compile is called once, when the text or the compiled
// program is first needed.
func New(name, arch string, m manifest.Manifest, digest string, compile func() (text []byte, compiled *p4.Program, err error)) *Program {
	return &Program{Name: name, Arch: cmp.Or(arch, codegen.Archs[0]), Manifest: m, Digest: digest, compile: compile}
}

// Digest returns the digest of a program's text.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// newGenerated wraps a program that was generated for an architecture.
func newGenerated(made *codegen.Program, arch string) *Program {
	return New(made.Name, arch, made.Manifest, Digest([]byte(made.P4)), func() ([]byte, *p4.Program, error) {
		file := made.Name + ".p4"
		text, err := format.Format([]byte(made.P4), file)
		if err != nil {
			return nil, nil, fmt.Errorf("generating %s: %w", made.Name, err)
		}
		compiled, err := p4.CompileText(file, text, p4.Options{Arch: arch})
		if err != nil {
			return nil, nil, fmt.Errorf("the program of %s does not compile: %w", made.Name, err)
		}
		var errs []error
		for _, e := range compiled.Warnings {
			errs = append(errs, e)
		}
		if err := errors.Join(errs...); err != nil {
			return nil, nil, fmt.Errorf("the program of %s: %w", made.Name, err)
		}
		return text, compiled, nil
	})
}

// Text returns the program in P4_16. Generated programs are in canonical form.
func (p *Program) Text() ([]byte, error) {
	err := p.made()
	return p.text, err
}

// Compiled returns the compiled program: BMv2 configuration and P4Info.
func (p *Program) Compiled() (*p4.Program, error) {
	err := p.made()
	return p.compiled, err
}

func (p *Program) made() error {
	p.once.Do(func() { p.text, p.compiled, p.err = p.compile() })
	return p.err
}
