package stf

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/program"
	"github.com/p4lb/p4lb/internal/p4"
)

// leaveToGo runs a test twice: with machine code that returns to Go only where
// it must, and with code that does so wherever it can.
func leaveToGo(cfg *bmv2.Config, text string) error {
	var errs []error
	for _, leave := range []bool{false, true} {
		s, err := Parse("stf", text)
		if err != nil {
			return err
		}
		o := s.Options(cfg)
		o.LeaveToGo = leave
		sw, err := dataplane.New(cfg, o)
		if err == nil {
			err = s.Run(sw)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// A program does the same if its machine code returns to Go wherever it can.
// The packets of the archives leave as expected; for v1model simple_switch has
// sent the expected packets. Machine code returns to Go at least once from each
// kind of place.
func TestEveryFallback(t *testing.T) {
	if !asm.Supported {
		t.Skip("machine code cannot be run here")
	}
	for _, err := range []error{oracleFallbacks(t), featureFallbacks(t, "features"), featureFallbacks(t, "tofino"), tofinoFallbacks(t)} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := leaveToGo(oldNames(), oldNamesTest); err != nil {
		t.Errorf("old names: %v", err)
	}
	if err := settingFallback(t); err != nil {
		t.Errorf("a hash that the control plane has set: %v", err)
	}
	taken := program.Fallbacks()
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		if taken[name] == 0 {
			t.Errorf("no packet took the way back to Go from %s", name)
		}
	}
}

// oracleFallbacks runs the tests recorded from simple_switch.
func oracleFallbacks(t *testing.T) error {
	files, err := filepath.Glob("testdata/*.stf")
	errs := []error{err}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil {
			err = leaveToGo(load(t, strings.TrimSuffix(filepath.Base(f), ".stf")), string(text))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// featureFallbacks runs the archives of the compiler's features.
func featureFallbacks(t *testing.T, folder string) error {
	dir := filepath.Join("../../p4/testdata", folder)
	files, err := filepath.Glob(dir + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives in %s: %v", dir, err)
	}
	frame, err := os.ReadFile(dir + "/frame.p4")
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fsys := fstest.MapFS{"frame.p4": {Data: frame}}
		for _, f := range archive.Files {
			fsys[f.Name] = &fstest.MapFile{Data: f.Data}
		}
		out, err := p4.Compile(fsys, "program.p4", p4.Options{})
		if err == nil {
			err = leaveToGo(out.Config, string(fsys["cases.stf"].Data))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// tofinoFallbacks runs the archives of Tofino's externs.
func tofinoFallbacks(t *testing.T) error {
	files, err := filepath.Glob("testdata/tofino/*.txtar")
	errs := []error{err}
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files[1:] {
			arch, define, _ := strings.Cut(strings.TrimSuffix(f.Name, ".stf"), "-")
			if arch == "any" {
				arch = "tna"
			}
			source := strings.Replace(string(archive.Files[0].Data), "<tna.p4>", "<"+arch+".p4>", 1)
			if define != "" {
				source = "#define " + define + "\n" + source
			}
			out, err := p4.CompileText("program.p4", []byte(source), p4.Options{Arch: arch})
			if err == nil {
				err = leaveToGo(out.Config, string(f.Data))
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s, %s: %w", name, f.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// oldNames is a program with primitives of BMv2 that compilers of P4_16 do not
// use: the primitives of P4_14, assignments of unions, and a parser that skips
// bytes. A packet has a byte to skip, then the fields f0 to f15 of a byte each.
func oldNames() *bmv2.Config {
	var h []bmv2.HeaderField
	for i := range 16 {
		h = append(h, bmv2.HeaderField{Name: fmt.Sprint("f", i), Width: 8})
	}
	std := []bmv2.HeaderField{
		{Name: "ingress_port", Width: 9}, {Name: "packet_length", Width: 32}, {Name: "instance_type", Width: 32},
		{Name: "egress_spec", Width: 9}, {Name: "egress_port", Width: 9}, {Name: "mcast_grp", Width: 16},
	}
	f := func(i int) *bmv2.Expr { return bmv2.FieldOf("h", fmt.Sprint("f", i)) }
	n := func(v int64) *bmv2.Expr { return bmv2.HexInt(v, 1) }
	header := func(name string) *bmv2.Expr { return bmv2.Ref(bmv2.TypeHeader, name) }
	op := func(name string, a ...*bmv2.Expr) *bmv2.Primitive { return &bmv2.Primitive{Op: name, Parameters: a} }
	list := []*bmv2.Primitive{
		op("modify_field", bmv2.FieldOf("std", "egress_spec"), n(1)),
		op("set", f(0), n(7)),
		op("add", f(1), n(3), n(4)),
		op("subtract", f(2), n(9), n(4)),
		op("bit_and", f(3), n(12), n(10)),
		op("bit_or", f(4), n(12), n(10)),
		op("bit_xor", f(5), n(12), n(10)),
		op("shift_left", f(6), n(3), n(2)),
		op("shift_right", f(7), n(12), n(2)),
		op("add_to_field", f(8), n(6)),
		op("subtract_from_field", f(9), n(1)),
		op("no_op"),
	}
	loop := []*bmv2.Primitive{
		op("_jump_if_zero", f(10), n(4)), // a loop that doubles f11 f10 times
		op("add_to_field", f(11), f(11)),
		op("subtract_from_field", f(10), n(1)),
		op("_jump", n(0)),
	}
	more := []*bmv2.Primitive{
		op("add_header", header("u[0].p")), op("assign_union_stack", bmv2.Ref(bmv2.TypeHeaderUnionStack, "v"), bmv2.Ref(bmv2.TypeHeaderUnionStack, "u")),
		op("assign_union", bmv2.Ref(bmv2.TypeHeaderUnion, "w"), bmv2.Ref(bmv2.TypeHeaderUnion, "v[0]")),
		op("modify_field", bmv2.FieldOf("w.p", "x"), n(0x77)),
		op("copy_header", header("g"), header("w.p")),
		op("_jump_if_zero", f(12), n(7)),
		op("drop"),
	}
	c := &bmv2.Config{
		HeaderTypes:      []*bmv2.HeaderType{{Name: "std", ID: 0, Fields: std}, {Name: "h", ID: 1, Fields: h}, {Name: "x", ID: 2, Fields: []bmv2.HeaderField{{Name: "x", Width: 8}}}},
		Headers:          []*bmv2.Header{{Name: "std", ID: 0, HeaderType: "std", Metadata: true}, {Name: "h", ID: 1, HeaderType: "h"}, {Name: "g", ID: 2, HeaderType: "x"}},
		HeaderUnionTypes: []*bmv2.HeaderUnionType{{Name: "u", Headers: []bmv2.UnionMember{{Name: "p", HeaderType: "x"}}}},
		Parsers: []*bmv2.Parser{{Name: "parser", InitState: "start", ParseStates: []*bmv2.ParseState{{
			Name: "start", ParserOps: []*bmv2.ParserOp{{Op: "shift", Parameters: []*bmv2.Expr{n(1)}}, {Op: "extract", Parameters: []*bmv2.Expr{bmv2.Ref(bmv2.TypeRegular, "h")}}},
			Transitions: []bmv2.Transition{{Type: "default"}},
		}}}},
		Deparsers: []*bmv2.Deparser{{Name: "deparser", Order: []string{"h", "g"}}},
		Actions:   []*bmv2.Action{{Name: "arithmetic", ID: 0, Primitives: list}, {Name: "unions", ID: 1, Primitives: more}, {Name: "loop", ID: 2, Primitives: loop}},
		Pipelines: []*bmv2.Pipeline{
			{Name: "ingress", InitTable: "first", ActionCalls: []*bmv2.ActionCall{{Name: "first", ActionID: 0, NextNode: "second"}, {Name: "second", ID: 1, ActionID: 2, NextNode: "third"}, {Name: "third", ID: 2, ActionID: 1}}},
			{Name: "egress", ID: 1},
		},
	}
	for i, name := range []string{"u[0]", "v[0]", "w"} {
		c.Headers = append(c.Headers, &bmv2.Header{Name: name + ".p", ID: 3 + i, HeaderType: "x"})
		c.HeaderUnions = append(c.HeaderUnions, &bmv2.HeaderUnion{Name: name, ID: i, UnionType: "u", HeaderIDs: []int{3 + i}})
	}
	c.HeaderUnionStacks = []*bmv2.HeaderUnionStack{{Name: "u", UnionType: "u", HeaderUnionIDs: []int{0}}, {Name: "v", ID: 1, UnionType: "u", HeaderUnionIDs: []int{1}}}
	for _, field := range std {
		c.FieldAliases = append(c.FieldAliases, bmv2.FieldAlias{Alias: "standard_metadata." + field.Name, Field: bmv2.FieldRef{Header: "std", Field: field.Name}})
	}
	return c
}

// The values are worked out by hand. The second packet is dropped.
const oldNamesTest = `
packet 2 ee 00 00 00 00 00 00 00 00 01 00 03 05 00 00 00 ff
expect 1    07 07 05 08 0e 06 0c 03 07 ff 00 28 00 00 00 ff 77 $
packet 2 ee 00 00 00 00 00 00 00 00 01 00 03 05 01 00 00 ff
`

// settingFallback changes a hash of the machine code into a constant: its seed.
func settingFallback(t *testing.T) error {
	archive, err := txtar.ParseFile("testdata/tofino/leftovers.txtar")
	if err != nil {
		t.Fatal(err)
	}
	source := strings.NewReplacer(
		"apply {\n        tm.ucast", "Hash<bit<32>>(HashAlgorithm_t.CRC32) crc;\n    apply {\n        meta.a = 0;\n        meta.hashed = crc.get({meta.a});\n        tm.ucast",
		"hdr.h.filtered = load", "hdr.h.color = meta.hashed[7:0];\n        hdr.h.filtered = load",
		"hdr.h.color = rate.execute(index = 0, color = (MeterColor_t)hdr.h.color);", "",
	).Replace(string(archive.Files[0].Data))
	out, err := p4.CompileText("program.p4", []byte(source), p4.Options{Arch: "tna"})
	if err != nil {
		return err
	}
	// The CRC32 of four zero bytes is 2144df1c.
	s, err := Parse("stf", "packet 5 07 09 00\nexpect 3 ** 00 1c $\n")
	if err != nil {
		return err
	}
	sw, err := dataplane.New(out.Config, s.Options(out.Config))
	if err != nil {
		return err
	}
	if err := s.Run(sw); err != nil {
		return err
	}
	seed := uint64(0x12345678)
	h, f, _, err := sw.Hashes().Info("Ingress.crc")
	if err != nil {
		return err
	}
	if err := sw.Hashes().Set("Ingress.crc", (&hash.Setting{Function: f, Seed: &seed}).Matrix(h)); err != nil {
		return err
	}
	if s, err = Parse("stf", "packet 5 07 09 00\nexpect 3 ** 00 78 $\n"); err != nil {
		return err
	}
	return s.Run(sw)
}
