package network

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// TestCellsWithoutSize: a manifest may leave out how many cells a register has.
func TestCellsWithoutSize(t *testing.T) {
	m := &manifest.Manifest{Scheme: "mine", Registers: []manifest.Register{{Name: "free"}, {Name: "four", Size: 4}}}
	s := &site{switches: []*reached{{node: &plan.Node{Name: "l1", Manifest: m}}}}
	for _, c := range []struct {
		register, cells string
		from, to        int
		err             string
	}{
		{"free", "3", 3, 4, ""},
		{"free", "7-9", 7, 10, ""},
		{"free", "all", 0, 0, "its manifest has no size"},
		{"free", "-1", 0, 0, "there are"},
		{"four", "all", 0, 4, ""},
		{"four", "3", 3, 4, ""},
		{"four", "4", 0, 0, "there are 4"},
		{"four", "0-3", 0, 4, ""},
		{"four", "2-2", 2, 3, ""},
		{"four", "2-4", 0, 0, "there are 4"},
		{"four", "3-2", 0, 0, "there are 4"},
		{"four", "x", 0, 0, "there are 4"},
		{"four", "1-x", 0, 0, "there are 4"},
		{"four", "x-1", 0, 0, "there are 4"},
		{"four", "1-", 0, 0, "there are 4"},
		{"free", "5-4", 0, 0, "there are"},
		{"none", "1", 0, 0, `there is no register "none"`},
	} {
		r, err := s.parseCells(c.register, c.cells)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %s: error %v, want %q", c.register, c.cells, err, c.err)
			}
			if f, ok := errors.AsType[*cli.Failure](err); c.register == "none" && (!ok || f.Hint != "mine has free, four") {
				t.Errorf("no register %s: %+v, want the names of the registers as a hint", c.register, f)
			}
		case err != nil:
			t.Errorf("%s %s: %v", c.register, c.cells, err)
		case r.from != c.from || r.to != c.to:
			t.Errorf("%s %s: cells %d to %d, want %d to %d", c.register, c.cells, r.from, r.to, c.from, c.to)
		}
	}
}

// A value must fit into the cells. If the manifest has no width, the switch checks it.
func TestValuesOfCells(t *testing.T) {
	for _, c := range []struct {
		width int
		text  string
		want  uint64
		err   string
	}{
		{1, "1", 1, ""},
		{1, "2", 0, "value 2: the cells of depth have 1 bits"},
		{8, "0xff", 255, ""},
		{8, "0x100", 0, "value 0x100: the cells of depth have 8 bits"},
		{63, "0x8000000000000000", 0, "value 0x8000000000000000: the cells of depth have 63 bits"},
		{64, "0xffffffffffffffff", math.MaxUint64, ""},
		{0, "0xffffffffffffffff", math.MaxUint64, ""},
		{0, "-1", 0, `value "-1" is not a number`},
	} {
		r := &cellRange{register: &manifest.Register{Name: "depth", Width: c.width}}
		got, err := r.parseValue(c.text)
		if got != c.want || c.err == "" && err != nil || c.err != "" && (err == nil || err.Error() != c.err) {
			t.Errorf("%s in %d bits: %d, %v; want %d, %q", c.text, c.width, got, err, c.want, c.err)
		}
	}
}
