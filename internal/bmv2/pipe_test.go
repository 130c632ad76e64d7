package bmv2

import (
	"reflect"
	"strings"
	"testing"
)

// pipe returns a Tofino document with everything that only such documents
// contain.
func pipe() *Config {
	c := &Config{Meta: &Meta{Version: []int{2, 23}, Architecture: TNA}}
	for i, name := range pipeHeaders {
		c.HeaderTypes = append(c.HeaderTypes, &HeaderType{Name: name, ID: i, Fields: []HeaderField{{Name: "f", Width: 64}}})
	}
	for i, gress := range []string{"ingress", "egress"} {
		c.Parsers = append(c.Parsers, &Parser{Name: gress + "_parser", ID: i, ReadsError: i == 0})
		c.Pipelines = append(c.Pipelines, &Pipeline{Name: gress, ID: i})
		c.Deparsers = append(c.Deparsers, &Deparser{Name: gress + "_deparser", ID: i, Order: []string{}})
	}
	c.RegisterArrays = []*RegisterArray{{Name: "r", Size: 4, Bitwidth: 16, Initial: "0xbeef"}}
	c.FilterArrays = []*FilterArray{{Name: "f", Size: 4, Bitwidth: 16}}
	c.Calculations = []*Calculation{{Name: "k", Algo: AlgoCRC, CRC: &CRC{Width: 16, Poly: "0x8005", Init: "0x0", Xor: "0x0", Reversed: true}}}
	return c
}

func TestPipeDocument(t *testing.T) {
	out := write(t, pipe())
	c, err := Load([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	if write(t, c) != out {
		t.Error("writing is not a fixpoint")
	}
	if want := pipe(); c.Architecture() != TNA || !c.Parsers[0].ReadsError || c.Parsers[1].ReadsError ||
		!reflect.DeepEqual(c.RegisterArrays, want.RegisterArrays) || !reflect.DeepEqual(c.FilterArrays, want.FilterArrays) ||
		!reflect.DeepEqual(c.Calculations[0].CRC, want.Calculations[0].CRC) {
		t.Errorf("writing loses information: %s", out)
	}
	for _, key := range []string{"architecture", "filter_arrays", "reads_error", "initial", "crc"} {
		if strings.Contains(small, `"`+key+`"`) || !strings.Contains(out, `"`+key+`"`) {
			t.Errorf("%s is a key of Tofino documents only", key)
		}
	}
}

func TestPipeErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Meta.Architecture = "psa" }, `__meta__.architecture: unknown architecture "psa": want tna or t2na`},
		{func(c *Config) { c.HeaderTypes[1].Name = "e" }, "header_types: a program for tna needs the header type egress_intrinsic_metadata_t"},
		{func(c *Config) { c.Parsers = c.Parsers[:1] }, "parsers: a program for tna needs egress_parser"},
		{func(c *Config) { c.Pipelines[0].Name = "i" }, "pipelines: a program for tna needs ingress"},
		{func(c *Config) { c.Deparsers[0].Name = "deparser" }, "deparsers: a program for tna needs ingress_deparser"},
		{func(c *Config) { c.Meta.Pipes = []int{0, 1} }, "parsers: a program for tna needs pipe1.ingress_parser"},
		{func(c *Config) { c.Meta.Pipes = []int{0, 4} }, "__meta__.pipes: [0 4]: want the program numbers of at most 4 pipes"},
		{func(c *Config) { c.Meta.Pipes = []int{-1} }, "__meta__.pipes: [-1]: want the program numbers"},
		{func(c *Config) { c.Meta.Pipes = []int{0, 0, 0, 0, 0} }, "__meta__.pipes: [0 0 0 0 0]: want the program numbers"},
		{func(c *Config) { c.RegisterArrays[0].Initial = "0x1beef" }, "register_arrays[0].initial: 0x1beef does not fit into 16 bits"},
		{func(c *Config) { c.RegisterArrays[0].Initial = "-0x1" }, "register_arrays[0].initial: -0x1 does not fit into 16 bits"},
		{func(c *Config) { c.RegisterArrays[0].Initial = "x" }, `register_arrays[0].initial: "x" is not a hexadecimal number`},
		{func(c *Config) { c.FilterArrays[0].Bitwidth = 65 }, "filter_arrays[0]: bitwidth 65 is outside 1..64"},
		{func(c *Config) { c.FilterArrays[0].Size = -1 }, "filter_arrays[0]: size -1 is outside"},
		{func(c *Config) { c.Calculations[0].Algo = "crc16" }, `calculations[0]: algorithm "crc16" with crc true`},
		{func(c *Config) { c.Calculations[0].CRC = nil }, `calculations[0]: algorithm "crc_custom" with crc false`},
		{func(c *Config) { c.Calculations[0].CRC.Width = 7 }, "calculations[0].crc: width 7 is outside 8..64"},
		{func(c *Config) { c.Calculations[0].CRC.Poly = "0x18005" }, "calculations[0].crc.poly: 0x18005 does not fit into 16 bits"},
	} {
		doc := pipe()
		c.change(doc)
		if err := doc.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
