package p4

import (
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// Archs are the architectures that programs can be written for: the switch of
// BMv2, Tofino 1 and Tofino 2.
var Archs = []string{"v1model", "tna", "t2na"}

// targets are the macros that compilers for the architectures define.
var targets = map[string]string{
	"v1model": "__TARGET_BMV2__",
	"tna":     "__TARGET_TOFINO__=1",
	"t2na":    "__TARGET_TOFINO__=2",
}

// archOf tells the architecture that a program is written for by the package
// that it makes its main of; "" where there is none, or one of its own.
func archOf(file *syntax.File) string {
	main := mainDecl(file)
	if main == nil {
		return ""
	}
	name, _ := main.Type.(*syntax.Name)
	if s, ok := main.Type.(*syntax.SpecializedType); ok {
		name = s.Base
	}
	if name == nil {
		return ""
	}
	for _, d := range file.Decls {
		if p, ok := d.(*syntax.PackageDecl); ok && p.Name.Value == name.Value {
			if p.Name.Value == "V1Switch" {
				return "v1model"
			}
			info := p.Annotations.Get("pkginfo")
			if info == nil {
				return ""
			}
			for _, t := range info.Tokens {
				if arch := strings.ToLower(strings.Trim(t.Text, `"`)); slices.Contains(Archs, arch) {
					return arch
				}
			}
			return ""
		}
	}
	return ""
}

func mainDecl(file *syntax.File) *syntax.InstDecl {
	for _, d := range slices.Backward(file.Decls) {
		if inst, ok := d.(*syntax.InstDecl); ok && inst.Name.Value == "main" {
			return inst
		}
	}
	return nil
}
