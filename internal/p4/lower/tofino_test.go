package lower

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/p4test"
	"github.com/p4lb/p4lb/internal/p4/syntax"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// tofinoFrame is a program that takes the sections of an archive: text before the
// blocks, declarations and states of the ingress parser, declarations and the body
// of the ingress control and of its deparser.
const tofinoFrame = `#include <%[1]s.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct headers_t { h_t h; h_t g; }
struct meta_t { bit<8> x; bit<16> y; bit<32> z; bool flag; }
%[2]s
parser IP(packet_in b, out headers_t h, out meta_t m, out ingress_intrinsic_metadata_t ig) {
%[3]s
}
control I(inout headers_t h, inout meta_t m, in ingress_intrinsic_metadata_t ig, in ingress_intrinsic_metadata_from_parser_t p,
          inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t tm) {
%[4]s
}
control ID(packet_out b, inout headers_t h, in meta_t m, in ingress_intrinsic_metadata_for_deparser_t d) {
%[5]s
}
struct none_t {}
parser EP(packet_in b, out none_t h, out none_t m, out egress_intrinsic_metadata_t eg) { state start { b.extract(eg); transition accept; } }
control E(inout none_t h, inout none_t m, in egress_intrinsic_metadata_t eg, in egress_intrinsic_metadata_from_parser_t p,
          inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) { apply {} }
control ED(packet_out b, inout none_t h, in none_t m, in egress_intrinsic_metadata_for_deparser_t d) { apply {} }
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
`

// tofinoProgram fills the frame; sections that are left out do the least.
func tofinoProgram(arch string, sections map[string]string) []byte {
	for name, least := range map[string]string{
		"parser.p4":   "state start { b.extract(ig); b.advance(PORT_METADATA_SIZE); b.extract(h.h); transition accept; }",
		"ingress.p4":  "apply {}",
		"deparser.p4": "apply { b.emit(h); }",
	} {
		if sections[name] == "" {
			sections[name] = least
		}
	}
	return fmt.Appendf(nil, tofinoFrame, arch, sections["top.p4"], sections["parser.p4"], sections["ingress.p4"], sections["deparser.p4"])
}

// TestTofino compares the documents of each extern and construct of TNA and T2NA
// with goldens.
func TestTofino(t *testing.T) {
	paths, err := filepath.Glob("testdata/tofino/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			arch, sections := bmv2.TNA, map[string]string{}
			for _, f := range a.Files {
				sections[f.Name] = string(f.Data)
			}
			if bytes.HasPrefix(a.Comment, []byte("T2NA")) {
				arch = bmv2.T2NA
			}
			file, info := p4test.Check(t, tofinoProgram(arch, sections))
			cfg, errs := Lower(file, info, Options{Arch: arch})
			if errs.Err() != nil {
				t.Fatal(errs)
			}
			var text bytes.Buffer
			if err := cfg.Write(&text); err != nil {
				t.Fatal(err)
			}
			if _, err := bmv2.Load(text.Bytes()); err != nil {
				t.Errorf("the document does not load: %v", err)
			}
			got := []byte(listing(cfg))
			last := &a.Files[len(a.Files)-1]
			switch {
			case last.Name != "document.txt":
				t.Fatal("the archive does not end with document.txt")
			case *update:
				last.Data = got
				if err := os.WriteFile(path, txtar.Format(a), 0o666); err != nil {
					t.Fatal(err)
				}
			case !bytes.Equal(got, last.Data):
				t.Error(p4test.FirstDifference(got, last.Data))
			}
		})
	}
}

// listing writes what matters of a document for reading: arrays, calculations,
// and the code.
func listing(c *bmv2.Config) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, a := range c.RegisterArrays {
		line("register %s: %d cells of %d bits %s", a.Name, a.Size, a.Bitwidth, a.Initial)
	}
	for _, a := range c.FilterArrays {
		line("filter %s: %d of %d bits wred %t", a.Name, a.Size, a.Bitwidth, a.Wred)
	}
	for _, a := range c.CounterArrays {
		line("counter %s: %d %s", a.Name, a.Size, a.Binding)
	}
	for _, a := range c.MeterArrays {
		line("meter %s: %d by %s %s %v", a.Name, a.Size, a.Type, a.Binding, a.ResultTarget)
	}
	for _, k := range c.Calculations {
		line("calculation %s: %s %s%s", k.Name, k.Algo, crcText(k.CRC), exprs(k.Input))
	}
	for _, l := range c.LearnLists {
		line("learn list %s: %s", l.Name, exprs(l.Elements))
	}
	for _, p := range c.Parsers {
		listParser(line, p)
	}
	for _, a := range c.Actions {
		if len(a.Primitives) > 0 {
			line("action %s", a.Name)
			listCode(line, a.Primitives)
		}
	}
	for _, p := range c.Pipelines {
		listPipeline(line, p)
	}
	for _, d := range c.Deparsers {
		if len(d.Order)+len(d.Primitives) > 0 {
			line("%s %s", d.Name, strings.Join(d.Order, " "))
			listCode(line, d.Primitives)
		}
	}
	return b.String()
}

func listParser(line func(string, ...any), p *bmv2.Parser) {
	if p.ReadsError {
		line("%s reads its error", p.Name)
	}
	if p.Name == "egress_parser" {
		return
	}
	for _, s := range p.ParseStates {
		line("state %s", s.Name)
		for _, op := range s.ParserOps {
			if op.Primitive != nil {
				line("  %s %s", op.Primitive.Op, exprs(op.Primitive.Parameters))
			} else {
				line("  %s %s", op.Op, exprs(op.Parameters))
			}
		}
		for _, t := range s.Transitions {
			line("  → %s %s%s %s", exprs(s.TransitionKey), t.Value, t.Mask, t.NextState)
		}
	}
}

func listPipeline(line func(string, ...any), p *bmv2.Pipeline) {
	for _, t := range p.Tables {
		if strings.HasPrefix(t.Name, "tbl_") {
			continue
		}
		line("table %s: %s, %d entries %s timeout %t meter %q", t.Name, t.Type, t.MaxSize, t.ActionProfile, t.SupportTimeout, t.DirectMeters)
		for _, k := range t.Key {
			line("  key %s %s", k.MatchType, k.Target)
		}
		if t.DefaultEntry != nil {
			line("  default %d%v", t.DefaultEntry.ActionID, t.DefaultEntry.ActionData)
		}
	}
	for _, a := range p.ActionProfiles {
		line("profile %s: %d", a.Name, a.MaxSize)
		if a.Selector != nil {
			line("  selects by %s over %s", a.Selector.Algo, exprs(a.Selector.Input))
		}
	}
	for _, k := range p.Conditionals {
		line("if %s: %s else %s", k.Expression, k.TrueNext, k.FalseNext)
	}
}

func listCode(line func(string, ...any), list []*bmv2.Primitive) {
	for i, p := range list {
		line("  %d %s %s", i, p.Op, exprs(p.Parameters))
	}
}

func exprs(list []*bmv2.Expr) string {
	var texts []string
	for _, e := range list {
		texts = append(texts, e.String())
	}
	return strings.Join(texts, ", ")
}

func crcText(c *bmv2.CRC) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%d poly %s init %s xor %s reversed %t ", c.Width, c.Poly, c.Init, c.Xor, c.Reversed)
}

// TestTofinoNotSupported checks that constructs which a document cannot express are
// refused at their positions.
func TestTofinoNotSupported(t *testing.T) {
	for _, test := range []struct{ name, arch, section, text, want string }{
		{"math unit", bmv2.TNA, "ingress.p4", `Register<bit<16>, bit<8>>(8) r;
			MathUnit<bit<16>>(MathOp_t.SQRT, -1) u;
			RegisterAction<bit<16>, bit<8>, bit<16>>(r) q = { void apply(inout bit<16> v) { v = u.execute(v); } };
			apply { q.execute(0); }`, `not supported: a MathUnit with a factor that is not a positive number`},
		{"learn action", bmv2.T2NA, "ingress.p4", `Register<bit<16>, bit<8>>(8) r;
			LearnAction<bit<16>, bit<8>, bit<8>, bit<8>>(r) l = { void apply(inout bit<16> v, in bit<8> g, in bool learn) {} };
			apply {}`, `^program.p4:12:4: not supported: a LearnAction`},
		{"address", bmv2.T2NA, "ingress.p4", `Register<bit<16>, bit<8>>(8) r;
			RegisterAction<bit<16>, bit<8>, bit<16>>(r) q = { void apply(inout bit<16> v) { v = 1; } };
			apply { m.y = q.address(); }`, `^program.p4:13:18: not supported: the method address of RegisterAction`},
		{"selector's bits", bmv2.TNA, "ingress.p4", `Hash<bit<16>>(HashAlgorithm_t.CRC16) h; ActionProfile(8) ap; Register<bit<1>, bit<8>>(64) bits;
			ActionSelector(ap, h, SelectorMode_t.FAIR, bits, 8, 8) s;
			SelectorAction(s) a = { void apply(inout bit<1> v) { v = 0; } };
			apply { a.execute(0); }`, `^program.p4:13:4: not supported: a SelectorAction: which bit`},
		{"an action wider than the register", bmv2.TNA, "ingress.p4", `Register<bit<8>, bit<8>>(8) r;
			RegisterAction<bit<16>, bit<8>, bit<8>>(r) q = { void apply(inout bit<16> v, out bit<8> rv) { rv = v[7:0]; } };
			apply { m.x = q.execute(0); }`, `^program.p4:12:53: not supported: a RegisterAction for bit<16> on a register of bit<8>: want the same type, or a narrower bit or int type`},
		{"emit under a condition", bmv2.TNA, "deparser.p4", "apply { if (m.flag) { b.emit(h.h); } b.emit(h.g); }", `^program.p4:14:23: not supported: emit under a condition`},
		{"mirror in a control", bmv2.TNA, "ingress.p4", "Mirror(1) mirror; apply { mirror.emit(3); }", `^program.p4:11:27: not supported: the method emit of Mirror outside of a deparser`},
		{"checksum in a control", bmv2.TNA, "ingress.p4", "Checksum() c; apply { c.add(h.h); }", `not supported: the method add of Checksum outside of a parser`},
		{"range of a direct register", bmv2.TNA, "ingress.p4", `DirectRegister<bit<8>>() r;
			DirectRegisterAction<bit<8>, bit<8>>(r) q = { void apply(inout bit<8> v) { v = 1; } };
			action a1() { q.execute(); }
			action a2() { q.execute(); }
			table t { key = { h.h.a: exact; } actions = { a1; } }
			table u { key = { h.h.a: exact; } actions = { a2; } }
			apply { t.apply(); u.apply(); }`, `^program.p4:14:18: I.r belongs to the entries of table I.t and cannot belong to the entries of I.u too`},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, info := p4test.Check(t, tofinoProgram(test.arch, map[string]string{test.section: test.text, "top.p4": "header empty_t {}"}))
			cfg, errs := Lower(file, info, Options{Arch: test.arch})
			if cfg != nil || errs.Err() == nil {
				t.Fatalf("it was lowered, want an error like %s", test.want)
			}
			var real syntax.Errors
			for _, e := range errs {
				if !e.Warning {
					real = append(real, e)
				}
			}
			if !regexp.MustCompile(test.want).MatchString(real.Error()) {
				t.Errorf("got %s, want %s", real, test.want)
			}
		})
	}
}

// TestTofinoPipes: one program where all pipes have the same, more where not.
func TestTofinoPipes(t *testing.T) {
	for switches, want := range map[string]struct {
		pipes  []int
		blocks string
	}{
		"Switch(pipe, pipe) main;":                                       {nil, "ingress egress"},
		"Switch(pipe, pipe2) main;":                                      {[]int{0, 1}, "ingress egress pipe1.ingress pipe1.egress"},
		"Switch(pipe, pipe2, pipe, pipe2) main;":                         {[]int{0, 1, 0, 1}, "ingress egress pipe1.ingress pipe1.egress"},
		"Switch(Pipeline(IP(), I(), ID(), EP(), E(), ED())) main;":       {nil, "ingress egress"},
		"Switch(pipe, Pipeline(IP(), I(), ID(), EP(), E(), ED())) main;": {[]int{0, 1}, "ingress egress pipe1.ingress pipe1.egress"},
	} {
		program := strings.Replace(string(tofinoProgram(bmv2.TNA, map[string]string{})), "Switch(pipe) main;",
			"Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe2;\n"+switches, 1)
		file, info := p4test.Check(t, []byte(program))
		cfg, errs := Lower(file, info, Options{Arch: bmv2.TNA})
		if errs.Err() != nil {
			t.Errorf("%s: %v", switches, errs)
			continue
		}
		var blocks []string
		for _, p := range cfg.Pipelines {
			blocks = append(blocks, p.Name)
		}
		if got := strings.Join(blocks, " "); got != want.blocks || !slices.Equal(cfg.Meta.Pipes, want.pipes) {
			t.Errorf("%s: blocks %s of pipes %v, want %s of %v", switches, got, cfg.Meta.Pipes, want.blocks, want.pipes)
		}
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", switches, err)
		}
	}
}

// TestManyParsers checks that the first of several parsers is used for all ports.
func TestManyParsers(t *testing.T) {
	program := strings.Replace(string(tofinoProgram(bmv2.TNA, map[string]string{})), "Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;\nSwitch(pipe) main;",
		"IngressParsers(IP(), IP()) many;\nMultiParserPipeline(many, I(), ID(), EgressParsers(EP()), E(), ED()) pipe;\nMultiParserSwitch(pipe) main;", 1)
	file, info := p4test.Check(t, []byte(program))
	cfg, errs := Lower(file, info, Options{Arch: bmv2.TNA})
	if errs.Err() != nil || len(errs) != 1 || !strings.Contains(errs[0].Msg, "p4lb uses the first parser for all ports") {
		t.Fatal(errs)
	}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

// A field without effect in p4lb's switch is reported by name.
func TestTofinoWithoutEffect(t *testing.T) {
	for body, want := range map[string]string{
		"apply { tm.deflect_on_drop = 1; }":   "deflect_on_drop has no effect",
		"apply { tm.ucast_egress_port = 1; }": "",
	} {
		file, info := p4test.Check(t, tofinoProgram(bmv2.TNA, map[string]string{"ingress.p4": body}))
		_, errs := Lower(file, info, Options{Arch: bmv2.TNA})
		got := ""
		for _, e := range errs {
			got += e.Msg
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: the warnings are %q, want %q", body, got, want)
		}
	}
}
