package dataplane

import (
	"errors"
	"slices"
	"time"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// A counter counts packets and the bytes that they had when they came in.
type counter struct {
	packets, bytes uint64
}

func (c *counter) add(p *vector.State) {
	c.packets++
	c.bytes += uint64(p.IngressLength)
}

type counterArray struct {
	name  string
	cells []counter
	// table is the table whose entries the counters belong to, if direct.
	table string
}

// A MeterRate is one rate of a meter: PerMicrosecond bytes or packets, and
// the burst that may exceed it.
type MeterRate struct {
	PerMicrosecond float64
	Burst          uint64
}

// A bucket is a rate at work. BMv2 counts all tokens since the meter's start,
// so that the rounding of one interval does not add up.
type bucket struct {
	rate   float64
	burst  uint64
	tokens uint64
	last   uint64
	color  uint64
}

// A meter marks packets with a colour: 0 if they are within all rates, 1 above
// the first (committed), 2 above the second (peak).
type meter struct {
	buckets    [maxRates]bucket // highest rate first
	rates      int
	configured bool
	seen       [maxRates + 1]counter // by colour
}

// maxRates is the number of rates of a P4 meter.
const maxRates = 2

type meterArray struct {
	name   string
	bytes  bool
	direct bool
	table  string
	target vector.Field
	rates  int
	cells  []meter
	missed meter // of the default entry, if direct
}

// mark stores the colour that a direct meter gives p.
func (a *meterArray) mark(m *meter, p *vector.State) {
	p.W[a.target.Off] = m.execute(a.bytes, p.IngressLength, p.Now) & num.Mask64(min(a.target.Width, 64))
}

// execute returns the colour of a packet of so many bytes at a time since the
// switch's start, and counts it.
func (m *meter) execute(bytes bool, length int, now time.Duration) uint64 {
	return m.executeColored(bytes, length, 0, now)
}

// executeColored is execute for a packet that has a colour already, which it
// keeps or gets a worse one. A packet above a rate takes no tokens of those
// below (RFC 2698).
func (m *meter) executeColored(bytes bool, length int, had uint64, now time.Duration) uint64 {
	c := m.color(bytes, length, had, now)
	m.seen[c].packets++
	m.seen[c].bytes += uint64(length)
	return c
}

func (m *meter) color(bytes bool, length int, had uint64, now time.Duration) uint64 {
	if !m.configured {
		return had
	}
	input := uint64(1)
	if bytes {
		input = uint64(length)
	}
	for i := range m.buckets[:m.rates] {
		b := &m.buckets[i]
		since := uint64(float64(now.Microseconds()) * b.rate)
		b.tokens = min(b.tokens+since-min(since, b.last), b.burst)
		b.last = since
		if b.tokens < input || b.color <= had {
			return b.color
		}
		b.tokens -= input
	}
	return 0
}

var (
	errRates     = errors.New("the rates must be one per colour, smallest first")
	errRateCount = errors.New("meters have one or two rates")
)

// configure sets the rates, smallest first.
func (m *meter) configure(rates []MeterRate) error {
	if len(rates) != m.rates {
		return errRates
	}
	for i := 1; i < len(rates); i++ {
		if rates[i].PerMicrosecond < rates[i-1].PerMicrosecond {
			return errRates
		}
	}
	for i, r := range rates {
		m.buckets[m.rates-1-i] = bucket{rate: r.PerMicrosecond, burst: r.Burst, tokens: r.Burst, color: uint64(i + 1)}
	}
	m.configured = true
	return nil
}

// get returns the rates, smallest first, or nil if there are none.
func (m *meter) get() []MeterRate {
	if !m.configured {
		return nil
	}
	var rates []MeterRate
	for i := m.rates - 1; i >= 0; i-- {
		rates = append(rates, MeterRate{m.buckets[i].rate, m.buckets[i].burst})
	}
	return rates
}

func newMeterArray(c *bmv2.MeterArray) (*meterArray, error) {
	if c.RateCount < 1 || c.RateCount > maxRates {
		return nil, errRateCount
	}
	m := &meterArray{name: c.Name, bytes: c.Type == "bytes", direct: c.IsDirect, table: c.Binding, rates: c.RateCount, missed: meter{rates: c.RateCount}}
	if !m.direct {
		m.grow(c.Size)
	}
	return m, nil
}

// grow makes room for n meters. Direct ones come with the entries of their
// table.
func (m *meterArray) grow(n int) {
	if n > cap(m.cells) {
		m.cells = slices.Grow(m.cells, max(n-len(m.cells), len(m.cells)))
	}
	for len(m.cells) < n {
		m.cells = append(m.cells, meter{rates: m.rates})
	}
}

// reset takes the rates of a direct meter away when its entry is new.
func (m *meterArray) reset(i int) {
	m.grow(i + 1)
	m.cells[i] = meter{rates: m.rates}
}
