package cell

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Count is the value of a counter: packets, and their bytes at arrival.
type Count struct {
	Packets, Bytes uint64
}

// Add counts a packet.
func (c *Count) Add(p *vector.State) {
	c.Packets++
	c.Bytes += uint64(p.IngressLength)
}

// A Counters is an array of counters.
type Counters struct {
	Name  string
	Cells []Count
	// Table is the table of direct counters.
	Table string
	// Late, if not nil, counts a packet when it leaves egress.
	Late *Late
}

// A Late lists the counters that count the packet in egress when it leaves.
type Late []*Count

// Add makes c count the packet when it leaves.
func (l *Late) Add(c *Count) { *l = append(*l, c) }

// Settle counts a packet of a number of bytes in all listed counters.
func (l *Late) Settle(bytes int) {
	for _, c := range *l {
		c.Packets++
		c.Bytes += uint64(bytes)
	}
	*l = (*l)[:0]
}

// Link links the counting of a packet in a cell. An index out of range has no
// effect.
func (a *Counters) Link(l *vector.Linker, e *bmv2.Expr) (vector.Step, error) {
	index, err := l.Number(e)
	if err != nil {
		return nil, err
	}
	at := index.Low()
	if a.Late != nil {
		return func(p *vector.State) {
			if i := uint64(uint32(at(p))); i < uint64(len(a.Cells)) {
				a.Late.Add(&a.Cells[i])
			}
		}, nil
	}
	return func(p *vector.State) {
		if i := uint64(uint32(at(p))); i < uint64(len(a.Cells)) {
			a.Cells[i].Add(p)
		}
	}, nil
}

// A MeterRate is one rate of a meter: PerMicrosecond bytes or packets, and the
// burst that it allows.
type MeterRate struct {
	PerMicrosecond float64
	Burst          uint64
}

// A bucket is a token bucket: its rate, its size, and its tokens.
type bucket struct {
	rate   float64 // tokens per microsecond
	burst  uint64
	tokens uint64
	last   int64 // the microsecond at which tokens were last added
	color  uint64
}

// maxExact is a number of tokens far below the overflow of uint64.
const maxExact = 1 << 62

// fill adds the tokens up to a microsecond. Like BMv2 it rounds the tokens since
// the switch's start, so that rounding errors do not accumulate. That number can
// overflow, because of the rate or the uptime. In that case one microsecond adds so
// many tokens that rounding a single interval does not matter.
func (b *bucket) fill(now int64) {
	before, after, elapsed := float64(b.last)*b.rate, float64(now)*b.rate, now-b.last
	b.last = now
	var tokens uint64
	switch {
	case elapsed <= 0:
	case after < maxExact:
		tokens = uint64(after) - uint64(before)
	default:
		tokens = uint64(min(float64(elapsed)*b.rate, maxExact))
	}
	if tokens >= b.burst-b.tokens {
		b.tokens = b.burst
	} else {
		b.tokens += tokens
	}
}

// A Meter marks packets with a colour: 0 if they are within all rates, 1 above
// the first (committed), 2 above the second (peak).
type Meter struct {
	buckets    [maxRates]bucket // highest rate first
	rates      int
	Configured bool
	Seen       [maxRates + 1]Count // by colour
}

// maxRates is the number of rates of a P4 meter.
const maxRates = 2

// A Meters is an array of meters, or the meters of a table's entries.
type Meters struct {
	name   string
	bytes  bool
	Direct bool
	Table  string
	Target vector.Field
	rates  int
	Cells  []Meter
	Missed Meter // the meter of the default entry, if direct
	Adjust int   // bytes added to the length of each packet
}

// length returns the length of a packet for the meters.
func (a *Meters) length(p *vector.State) int { return max(0, p.IngressLength+a.Adjust) }

// Mark stores the colour of a direct meter for p.
func (a *Meters) Mark(m *Meter, p *vector.State) {
	p.W[a.Target.Off] = m.execute(a.bytes, a.length(p), 0, p.Now) & num.Mask64(min(a.Target.Width, 64))
}

// execute returns the colour of a packet of length bytes at a time since the
// switch's start, and counts it. A packet that already has a colour keeps it or
// gets a worse one. A packet above a rate takes no tokens of the lower rates (RFC
// 2698).
func (m *Meter) execute(bytes bool, length int, had uint64, now time.Duration) uint64 {
	c := m.color(bytes, length, had, now)
	m.Seen[c].Packets++
	m.Seen[c].Bytes += uint64(length)
	return c
}

func (m *Meter) color(bytes bool, length int, had uint64, now time.Duration) uint64 {
	if !m.Configured {
		return had
	}
	input := uint64(1)
	if bytes {
		input = uint64(length)
	}
	for i := range m.buckets[:m.rates] {
		b := &m.buckets[i]
		b.fill(now.Microseconds())
		if b.tokens < input || b.color <= had {
			return b.color
		}
		b.tokens -= input
	}
	return 0
}

var (
	// ErrRates is the error for rates that do not fit a meter.
	ErrRates     = errors.New("the rates must be one per colour, smallest first, none negative or infinite")
	errRateCount = errors.New("meters have one or two rates")
)

// Configure sets the rates, smallest first.
func (m *Meter) Configure(rates []MeterRate) error {
	if len(rates) != m.rates {
		return ErrRates
	}
	for i, r := range rates {
		finite := r.PerMicrosecond >= 0 && r.PerMicrosecond <= math.MaxFloat64
		if !finite || i > 0 && r.PerMicrosecond < rates[i-1].PerMicrosecond {
			return ErrRates
		}
	}
	for i, r := range rates {
		m.buckets[m.rates-1-i] = bucket{rate: r.PerMicrosecond, burst: r.Burst, tokens: r.Burst, color: uint64(i + 1)}
	}
	m.Configured = true
	return nil
}

// Get returns the rates, smallest first, or nil if there are none.
func (m *Meter) Get() []MeterRate {
	if !m.Configured {
		return nil
	}
	var rates []MeterRate
	for i := m.rates - 1; i >= 0; i-- {
		rates = append(rates, MeterRate{m.buckets[i].rate, m.buckets[i].burst})
	}
	return rates
}

// NewMeters returns the array of a program; its meters have no rates.
func NewMeters(c *bmv2.MeterArray) (*Meters, error) {
	if c.RateCount < 1 || c.RateCount > maxRates {
		return nil, errRateCount
	}
	m := &Meters{name: c.Name, bytes: c.Type == "bytes", Direct: c.IsDirect, Table: c.Binding, rates: c.RateCount, Missed: Meter{rates: c.RateCount}}
	if !m.Direct {
		m.grow(c.Size)
	}
	return m, nil
}

// grow makes room for n meters. Direct meters appear with the entries of their
// table.
func (m *Meters) grow(n int) {
	if n > cap(m.Cells) {
		m.Cells = slices.Grow(m.Cells, max(n-len(m.Cells), len(m.Cells)))
	}
	for len(m.Cells) < n {
		m.Cells = append(m.Cells, Meter{rates: m.rates})
	}
}

// Reset removes the rates of a direct meter when its entry is new.
func (m *Meters) Reset(i int) {
	m.grow(i + 1)
	m.Cells[i] = Meter{rates: m.rates}
}

// Link links the execution of a cell. Its parameters are the index, the destination
// of the colour, and the packet's previous colour if there is one. An index out of
// range has no effect.
func (m *Meters) Link(l *vector.Linker, a []*bmv2.Expr) (vector.Step, error) {
	index, err := l.Number(a[0])
	if err != nil {
		return nil, err
	}
	dst, err := l.Place(a[1])
	if err != nil {
		return nil, err
	}
	had := vector.ConstInt(0)
	if len(a) > 2 {
		if had, err = l.Number(a[2]); err != nil {
			return nil, err
		}
	}
	at, set, color := index.Low(), dst.Set(), had.Low()
	return func(p *vector.State) {
		if i := uint64(uint32(at(p))); i < uint64(len(m.Cells)) {
			set(p, m.Cells[i].execute(m.bytes, m.length(p), min(color(p), maxRates), p.Now))
		}
	}, nil
}
