package p4

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// Archs lists the supported architectures: BMv2's v1model, Tofino 1 and Tofino 2.
var Archs = []string{"v1model", "tna", "t2na"}

// targets maps each architecture to the macro that its compilers define.
var targets = map[string]string{
	"v1model": "__TARGET_BMV2__",
	"tna":     "__TARGET_TOFINO__=1",
	"t2na":    "__TARGET_TOFINO__=2",
}

// mainPackage returns the name of the package that main instantiates, or nil if
// main's type is not a plain name.
func mainPackage(main *syntax.InstDecl) *syntax.Name {
	if s, ok := main.Type.(*syntax.SpecializedType); ok {
		return s.Base
	}
	name, _ := main.Type.(*syntax.Name)
	return name
}

// archOf returns the architecture of a program, according to the package that main
// instantiates. It returns "" if there is no main, or if the package is not one of
// a known architecture.
func archOf(file *syntax.File) string {
	main := mainDecl(file)
	if main == nil {
		return ""
	}
	name := mainPackage(main)
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

// supported ends the messages about other architectures.
const supported = "p4lb compiles programs for v1model, TNA and T2NA"

// foreignFiles maps the include files of unsupported architectures to the
// architecture's name.
var foreignFiles = map[string]string{
	"psa.p4": "PSA", "bmv2/psa.p4": "PSA", "dpdk/psa.p4": "PSA", "pna.p4": "PNA", "dpdk/pna.p4": "PNA", "tc/pna.p4": "PNA",
	"ebpf_model.p4": "eBPF", "ubpf_model.p4": "uBPF", "xdp_model.p4": "XDP", "simple_sume_switch.p4": "SimpleSumeSwitch", "sume_switch.p4": "SimpleSumeSwitch",
}

// foreignPackages maps the packages of unsupported architectures to the
// architecture's name.
var foreignPackages = map[string]string{
	"PSA_Switch": "PSA", "PNA_NIC": "PNA", "ebpfFilter": "eBPF", "ubpf": "uBPF", "xdp": "XDP", "SimpleSumeSwitch": "SimpleSumeSwitch",
}

// absent explains why an include file of an unsupported architecture does not
// exist.
func absent(name string) string {
	if strings.HasPrefix(name, "tofino/") {
		return "P4_14 for Tofino is not supported: " + supported
	}
	if arch := foreignFiles[strings.TrimPrefix(path.Clean(name), "./")]; arch != "" {
		return fmt.Sprintf("the architecture %s is not supported: %s", arch, supported)
	}
	return ""
}

// foreign returns an error if main is written for an unsupported architecture, and
// nil if it is supported or if there is no main.
func foreign(file *syntax.File) *syntax.Error {
	main := mainDecl(file)
	if main == nil || archOf(file) != "" {
		return nil
	}
	name := mainPackage(main)
	if name == nil {
		return nil
	}
	arch := foreignPackages[name.Value]
	if arch == "" {
		declared := func(d syntax.Decl) bool {
			p, ok := d.(*syntax.PackageDecl)
			return ok && p.Name.Value == name.Value
		}
		if !slices.ContainsFunc(file.Decls, declared) {
			return nil // the checker reports it
		}
		arch = "of package " + name.Value
	}
	return &syntax.Error{Pos: main.Pos(), Msg: fmt.Sprintf("not supported: the architecture %s: %s", arch, supported), Class: syntax.Unsupported}
}

func mainDecl(file *syntax.File) *syntax.InstDecl {
	for _, d := range slices.Backward(file.Decls) {
		if inst, ok := d.(*syntax.InstDecl); ok && inst.Name.Value == "main" {
			return inst
		}
	}
	return nil
}
