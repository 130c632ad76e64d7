package cell

import "testing"

// A packet that comes with a colour keeps it or gets a worse one, and takes
// tokens of the rates above its colour alone: four of the peak rate, two of the
// committed one, and no time for more.
func TestColoredMeter(t *testing.T) {
	const green, yellow, red = 0, 1, 2
	for _, c := range []struct{ had, want []uint64 }{
		{[]uint64{green, green, green, green, green}, []uint64{green, green, yellow, yellow, red}},
		{[]uint64{red, red, green, green, green, green, green}, []uint64{red, red, green, green, yellow, yellow, red}},
		{[]uint64{yellow, yellow, green, green, green}, []uint64{yellow, yellow, green, green, red}},
		{[]uint64{yellow, yellow, yellow, yellow, yellow, green}, []uint64{yellow, yellow, yellow, yellow, red, red}},
	} {
		m := Meter{rates: 2}
		if got := m.execute(false, 100, yellow, 0); got != yellow {
			t.Errorf("a meter without rates makes yellow %d", got)
		}
		if err := m.Configure([]MeterRate{{Burst: 2}, {Burst: 4}}); err != nil {
			t.Fatal(err)
		}
		for i, had := range c.had {
			if got := m.execute(false, 100, had, 0); got != c.want[i] {
				t.Errorf("%v: packet %d gets %d, want %d", c.had, i, got, c.want[i])
			}
		}
	}
}
