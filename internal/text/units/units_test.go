package units_test

import (
	"fmt"
	"testing"

	"github.com/p4lb/p4lb/internal/text/units"
)

func ExampleScale_Parse() {
	decimal, _ := units.Sizes.Parse("64KB")
	binary, _ := units.Sizes.Parse("64KiB")
	fmt.Println(decimal, binary, units.Sizes.Format(binary, 3))
	// Output: 64000 65536 64KiB
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		scale units.Scale
		text  string
		want  int64 // -1: invalid
	}{
		{units.Sizes, "64KB", 64_000}, {units.Sizes, "64KiB", 65_536}, {units.Sizes, "9MB", 9e6}, {units.Sizes, "9MiB", 9 << 20},
		{units.Sizes, "1.5KB", 1500}, {units.Sizes, "62.5 KB", 62_500}, {units.Sizes, "2GiB", 2 << 30}, {units.Sizes, "0B", 0},
		{units.Sizes, "9", -1}, {units.Sizes, "9Mb", -1}, {units.Sizes, "64kb", -1}, {units.Sizes, "-1B", -1}, {units.Sizes, "0.5B", -1},
		{units.Sizes, "KiB", -1}, {units.Sizes, "", -1}, {units.Sizes, "99999999TiB", -1},
		{units.Rates, "40G", 40e9}, {units.Rates, "2.5Gbps", 2.5e9}, {units.Rates, "9Kbps", 9e3}, {units.Rates, "1e9bps", -1}, {units.Rates, "1/2G", -1},
		{units.Times, "12.5us", 12_500}, {units.Times, "1µs", 1000}, {units.Times, " 10 ns ", 10}, {units.Times, "0.5ns", -1}, {units.Times, "1h", -1},
	} {
		if got, ok := c.scale.Parse(c.text); ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("%q is read as %d, %v, want %d", c.text, got, ok, c.want)
		}
	}
}

// TestFormat: values use the shorter family and parse to the same value.
func TestFormat(t *testing.T) {
	for _, c := range []struct {
		scale  units.Scale
		v      int64
		digits int
		want   string
	}{
		{units.Sizes, 64_000, 3, "64KB"}, {units.Sizes, 65_536, 3, "64KiB"}, {units.Sizes, 128_000, 0, "128KB"}, {units.Sizes, 9 << 20, 3, "9MiB"},
		{units.Sizes, 250_000, 3, "250KB"}, {units.Sizes, 1536, 3, "1.5KiB"}, {units.Sizes, 1536, 0, "1536B"}, {units.Sizes, 1 << 30, 0, "1GiB"}, {units.Sizes, 0, 3, "0B"},
		{units.Rates, 2.5e9, 3, "2.5Gbps"}, {units.Rates, 2.5e9, 0, "2500Mbps"}, {units.Rates, 400e6, 3, "400Mbps"},
		{units.Times, 1_500_000, 0, "1500us"}, {units.Times, 1_234_567, 3, "1234.567us"},
	} {
		got := c.scale.Format(c.v, c.digits)
		if again, ok := c.scale.Parse(got); got != c.want || !ok || again != c.v {
			t.Errorf("%d is written %s, want %s; read back it is %d", c.v, got, c.want, again)
		}
	}
	for _, v := range []int64{1, 7, 999, 1000, 1001, 1024, 1500, 12_500, 1e6, 65_536, 123_456_789, 2.5e9, 9 << 20, 1<<40 + 1} {
		for _, s := range []units.Scale{units.Sizes, units.Rates, units.Times} {
			for _, digits := range []int{0, 3} {
				if again, ok := s.Parse(s.Format(v, digits)); !ok || again != v {
					t.Errorf("%d is written %s, and read as %d", v, s.Format(v, digits), again)
				}
			}
		}
	}
}
