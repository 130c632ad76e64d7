package cell

import (
	"math"
	"testing"
	"time"
)

// A packet with a colour keeps it or gets a worse one, and takes tokens only of
// the rates above its colour: here four of the peak rate and two of the
// committed rate, without time for more.
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

// A packet within the rate is green for any rate, uptime and burst. The rates
// go up to an int64 of bytes per second, and beyond.
func TestMeterDoesNotOverflow(t *testing.T) {
	const (
		year    = 365 * 24 * time.Hour
		highest = math.MaxInt64 / 1e6 // of P4Runtime, per microsecond
	)
	for _, c := range []struct {
		name  string
		rate  MeterRate
		at    []time.Duration
		bytes int
		want  uint64 // the colour of each packet
	}{
		{"the highest rate after a second", MeterRate{highest, 1500}, []time.Duration{1 * time.Second, 2 * time.Second, 3 * time.Second}, 1500, 0},
		{"the highest rate, packets 1 us apart", MeterRate{highest, 1500}, []time.Duration{time.Hour, time.Hour + time.Microsecond}, 1500, 0},
		{"the highest rate after 290 years", MeterRate{highest, 1500}, []time.Duration{290 * year, 290*year + time.Microsecond}, 1500, 0},
		{"100 Gbit/s after 290 years", MeterRate{12500, 1500}, []time.Duration{290 * year, 290*year + time.Microsecond}, 1500, 0},
		{"the largest float", MeterRate{math.MaxFloat64, 1500}, []time.Duration{0, time.Microsecond, year}, 1500, 0},
		{"the largest burst", MeterRate{highest, math.MaxUint64}, []time.Duration{time.Second, time.Hour, year}, 1500, 0},
		{"more than the burst", MeterRate{highest, 1500}, []time.Duration{time.Second, 2 * time.Second}, 1501, 1},
	} {
		m := Meter{rates: 1}
		if err := m.Configure([]MeterRate{c.rate}); err != nil {
			t.Fatal(err)
		}
		for i, at := range c.at {
			if got := m.execute(true, c.bytes, 0, at); got != c.want {
				t.Errorf("%s: packet %d is %d, want %d", c.name, i, got, c.want)
			}
		}
	}
}

// BMv2 rounds the tokens since the start down: at 0.3 per microsecond there are
// 0, 0, 0, 0, 1, 1, 1, 2 after 0 to 7 µs.
func TestTokensAreRoundedOnce(t *testing.T) {
	b := bucket{rate: 0.3, burst: 100}
	for us, want := range []uint64{0, 0, 0, 0, 1, 1, 1, 2} {
		if b.fill(int64(us)); b.tokens != want {
			t.Errorf("%d tokens after %d µs, want %d", b.tokens, us, want)
		}
	}
}

// Negative, infinite and undefined rates are refused.
func TestMeterRefusesRates(t *testing.T) {
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1)} {
		m := Meter{rates: 1}
		if err := m.Configure([]MeterRate{{rate, 1}}); err == nil || m.Configured {
			t.Errorf("the rate %v is accepted", rate)
		}
	}
}
