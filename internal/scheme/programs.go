package scheme

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// Make makes the program of a scheme and compiles it.
func Make(s Scheme, params codegen.Params) (*Program, error) {
	p, err := s.Build(params)
	if err != nil {
		return nil, err
	}
	if _, err := p.Compiled(); err != nil {
		return nil, err
	}
	return p, nil
}

// MakeAll makes the programs of several schemes in parallel, and returns them in the same order.
func MakeAll(ctx context.Context, schemes []Scheme, params codegen.Params) ([]*Program, error) {
	list := make([]*Program, len(schemes))
	errs := make([]error, len(schemes))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(schemes)) {
		workers.Go(func() {
			for i := range next {
				list[i], errs[i] = Make(schemes[i], params)
			}
		})
	}
	for i := range schemes {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return list, errors.Join(errs...)
}

// A File is a file to write.
type File struct {
	Name string
	Data []byte
}

// Files returns the files of a program: text, BMv2 JSON, P4Info, manifest and, for
// Tofino, the BfRt schema.
func Files(p *Program) ([]File, error) {
	text, err := p.Text()
	if err != nil {
		return nil, err
	}
	compiled, err := p.Compiled()
	if err != nil {
		return nil, err
	}
	files := []File{
		{p.Name + ".p4", text},
		{p.Name + ".json", document(p, compiled)},
		{p.Name + ".p4info.txtpb", compiled.P4InfoText()},
		{p.Name + ".manifest.json", manifestText(&p.Manifest)},
	}
	if compiled.Config.Architecture() != "" {
		if err := compiled.DescribeBfRt(); err != nil {
			return nil, err
		}
		files = append(files, File{p.Name + ".bf-rt.json", compiled.Schema.JSON()})
	}
	return files, nil
}

// document returns the BMv2 JSON, with the program's provenance if it is known.
func document(p *Program, compiled *p4.Program) []byte {
	made := p.Manifest.Provenance
	if made == nil {
		return compiled.JSON()
	}
	var b bytes.Buffer
	compiled.Config.MadeBy(made.Generator, made.Command, made.Licence).Write(&b) // writing to a buffer does not fail
	return b.Bytes()
}

func manifestText(m *manifest.Manifest) []byte {
	text, err := m.JSON()
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return text
}
