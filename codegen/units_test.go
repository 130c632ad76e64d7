package codegen

import "testing"

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		unit  Unit
		text  string
		value int64
		shown string
	}{
		{Time, "1ms", 1_000_000, "1ms"},
		{Time, "500us", 500_000, "500us"},
		{Time, "1.5ms", 1_500_000, "1500us"},
		{Time, "2s", 2_000_000_000, "2s"},
		{Time, "10 ns", 10, "10ns"},
		{Rate, "40G", 40e9, "40Gbps"},
		{Rate, "400Mbps", 400e6, "400Mbps"},
		{Rate, "2.5G", 2_500_000_000, "2500Mbps"},
		{Size, "64KB", 64000, "64KB"},
		{Size, "64KiB", 65536, "64KiB"},
		{Size, "9MB", 9_000_000, "9MB"},
		{Size, "9MiB", 9 << 20, "9MiB"},
		{Share, "70%", 70, "70%"},
		{Packets, "64", 64, "64 packets"},
		{Packets, "64 packets", 64, "64 packets"},
		{Number, "4", 4, "4"},
		{Number, "0", 0, "0"},
	} {
		got, err := c.unit.parse(c.text)
		if err != nil || got != c.value {
			t.Errorf("%s %q is read as %d, %v, want %d", c.unit, c.text, got, err, c.value)
		}
		if shown := c.unit.format(c.value); shown != c.shown {
			t.Errorf("%s %d is shown as %s, want %s", c.unit, c.value, shown, c.shown)
		}
		if again, err := c.unit.parse(c.unit.format(c.value)); err != nil || again != c.value {
			t.Errorf("%s %d is read back as %d, %v", c.unit, c.value, again, err)
		}
	}
	for _, c := range []struct {
		unit Unit
		text string
	}{
		{Time, ""}, {Time, "ms"}, {Time, "1"}, {Time, "1KB"}, {Time, "1e3ms"}, {Time, "0.1ns"}, {Time, "1/2ms"}, {Time, "-1ms"},
		{Time, "99999999999999999999s"}, {Rate, "40"}, {Size, "64kb"}, {Share, "0.7"}, {Number, "4 packets"}, {Number, "0x4"}, {Number, "1..2"},
	} {
		if v, err := c.unit.parse(c.text); err == nil {
			t.Errorf("%s %q is read as %d", c.unit, c.text, v)
		}
	}
}

func TestIntervals(t *testing.T) {
	a, b := between("a", -2, 3), between("b", 4, 5)
	for _, c := range []struct {
		got      interval
		lo, hi   int64
		text     string
		fitsBits uint
	}{
		{a.plus(b), 2, 8, "(a + b)", 4},
		{b.minus(a), 1, 7, "(b - a)", 3},
		{a.times(b), -10, 15, "a*b", 0},
		{a.times(a), -6, 9, "a*a", 0},
		{b.times(b).shifted(2), 4, 6, "(b*b >> 2)", 3},
	} {
		if c.got.lo.Int64() != c.lo || c.got.hi.Int64() != c.hi || c.got.text != c.text {
			t.Errorf("%s is %s to %s, want %s from %d to %d", c.got.text, c.got.lo, c.got.hi, c.text, c.lo, c.hi)
		}
		if c.fitsBits == 0 {
			if c.got.fits(64) == nil {
				t.Errorf("%s may be negative", c.got.text)
			}
			continue
		}
		if c.got.fits(c.fitsBits) != nil || c.got.fits(c.fitsBits-1) == nil {
			t.Errorf("%s fits in %d bits, and not in fewer", c.got.text, c.fitsBits)
		}
	}
}

// TestDegrees checks that the ranges of DHLB's Table 1 include their lower bounds, at all
// rates.
func TestDegrees(t *testing.T) {
	row, err := Lookup("dhlb")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"1Mbps", "200Mbps", "40G", "1T"} {
		v, err := newView(row, Params{Set: map[string]string{"link": link}})
		if err != nil {
			t.Fatal(err)
		}
		next := int64(0)
		for _, r := range v.Load.Degrees() {
			if r.From != next || r.To < r.From {
				t.Errorf("%s: degree %d from %d to %d, after %d", link, r.Degree, r.From, r.To, next-1)
			}
			next = r.To + 1
		}
		if next != 1<<32 {
			t.Errorf("%s: the last range ends at %d", link, next-1)
		}
		full := v.Load.WindowBytes()
		for _, c := range []struct{ percent, degree int64 }{{0, 5}, {25, 3}, {50, 2}, {70, 1}, {90, 0}, {100, 0}} {
			if got := degreeOf(v.Load.Degrees(), (full*c.percent+99)/100); got != c.degree {
				t.Errorf("%s: degree %d at %d%%, want %d", link, got, c.percent, c.degree)
			}
		}
	}
}

func degreeOf(list []degreeRange, bytes int64) int64 {
	for _, r := range list {
		if bytes >= r.From && bytes <= r.To {
			return int64(r.Degree)
		}
	}
	return -1
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{"letfow": "letflow", "DRILL": "drill", "poly3": "qall-poly3", "xxxxxxxx": ""} {
		got := ""
		if list := nearest(name, Standard().schemeNames()); len(list) > 0 {
			got = list[0]
		}
		if got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}
