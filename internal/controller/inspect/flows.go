package inspect

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A FlowTable describes how full a table of flow slots is.
type FlowTable struct {
	Register string        `json:"register"` // that holds the flow's path, or else its time
	Slots    int           `json:"slots"`
	Occupied int           `json:"occupied"` // hold a path, or a time
	Active   int           `json:"active"`   // of them, heard of within Gap, or still expected
	Gap      time.Duration `json:"gap_ns"`   // 0 where the program has none
	Aged     bool          `json:"has_ages"` // there is a register of times: the ages are known

	// Ages of the occupied slots by the switch's clock; the median is right to a
	// tenth.
	Youngest time.Duration `json:"youngest_ns"`
	Median   time.Duration `json:"median_ns"`
	Oldest   time.Duration `json:"oldest_ns"`

	// Paths counts the occupied slots by the place of their path in its group.
	Paths []int `json:"paths,omitempty"`

	// Collisions estimates how many flows found their slot taken by another: how
	// many it takes to fill so many slots at random, less these slots.
	Collisions float64 `json:"collisions"`
}

// flowTables sums up the registers by flow: one table for each that holds a
// path, or one for times alone.
func (r *reader) flowTables() []FlowTable {
	var paths, times []*registers.Array
	for _, a := range r.in.arrays {
		switch {
		case a.Index != manifest.ByFlow:
		case a.Valid > 0:
			paths = append(paths, a)
		case a.Moment():
			times = append(times, a)
		}
	}
	var when *registers.Array
	if len(times) > 0 {
		when = times[0]
	}
	list := lists.Map(paths, func(a *registers.Array) FlowTable { return r.flowTable(a, when) })
	if len(paths) == 0 && when != nil {
		list = append(list, r.flowTable(when, when))
	}
	return list
}

// flowTable sums up one register, with the times of its flows if when is not
// nil.
func (r *reader) flowTable(a, when *registers.Array) FlowTable {
	t := FlowTable{Register: a.Name, Slots: a.Size, Gap: time.Duration(r.in.node.Manifest.FlowTimeout), Aged: when != nil}
	var ages ageCounts
	if a.Valid > 0 {
		t.Paths = make([]int, r.in.node.Manifest.Paths)
	}
	now, gap := r.s.Clock.Microseconds(), t.Gap.Microseconds()
	for i, v := range a.Cells {
		if a.Valid > 0 && v>>a.Valid == 0 || v == 0 {
			continue
		}
		t.Occupied++
		if slot := int(v & 0xff); slot < len(t.Paths) {
			t.Paths[slot]++
		}
		if when == nil || i >= len(when.Cells) {
			continue
		}
		age := now - int64(when.Cells[i])
		if age <= gap {
			t.Active++
		}
		ages.add(max(0, age))
	}
	t.Collisions = collisions(t.Occupied, t.Slots)
	if when != nil && t.Occupied > 0 {
		t.Youngest, t.Median, t.Oldest = ages.summary()
	}
	return t
}

// fullness adds the readings that describe a flow table as a whole.
func (r *reader) fullness(t FlowTable) {
	about := func(meaning string) Reading { return Reading{Index: t.Register, Meaning: meaning} }
	count := func(name string, n float64, meaning string) {
		r.quantity(t.Register+" "+name, plainText(math.Round(n)), n, "", about(meaning))
	}
	count("occupied", float64(t.Occupied), fmt.Sprintf("slots of %d that hold a flow", t.Slots))
	count("collisions", t.Collisions, "flows that share a slot with another, by how full the table is")
	if !t.Aged {
		return
	}
	count("active", float64(t.Active), "slots with a recently active flow")
	age := float64(t.Median.Microseconds())
	r.quantity(t.Register+" age", durationText(t.Median), age, "us", about("half of the flows were heard of since"))
}

// collisions is linear counting: n flows at random leave a slot empty with
// probability (1-1/m)^n, so k occupied slots of m speak for
// ln(1-k/m)/ln(1-1/m) flows. A full table speaks for any number: it is taken to
// have one slot left.
func collisions(occupied, slots int) float64 {
	if occupied == 0 || slots < 2 {
		return 0
	}
	free := max(1, slots-occupied)
	flows := math.Log(float64(free)/float64(slots)) / math.Log1p(-1/float64(slots))
	return max(0, flows-float64(occupied))
}

// ageCounts counts ages in µs by their three leading bits: enough for a median,
// without sorting 65,536 of them.
type ageCounts struct {
	count    int
	buckets  [8 * 64]int32
	min, max int64
}

func (c *ageCounts) add(age int64) {
	if c.count == 0 || age < c.min {
		c.min = age
	}
	c.max = max(c.max, age)
	c.count++
	c.buckets[bucketOf(age)]++
}

// bucketOf keeps the exponent and the three bits below the leading one.
func bucketOf(age int64) int {
	v := uint64(age)
	if v < 8 {
		return int(v)
	}
	e := bits.Len64(v) - 4 // so that v>>e is 8 to 15
	return 8*(e+1) + int(v>>e)&7
}

// middleOf is the age in the middle of a bucket.
func middleOf(bucket int) int64 {
	if bucket < 8 {
		return int64(bucket)
	}
	e := bucket/8 - 1
	return int64(8+bucket&7)<<e + int64(1)<<e/2
}

func (c *ageCounts) summary() (youngest, median, oldest time.Duration) {
	left := int32(c.count+1) / 2
	for b, n := range c.buckets {
		if left -= n; left <= 0 {
			m := min(max(middleOf(b), c.min), c.max)
			return registers.Micros(uint64(c.min)), registers.Micros(uint64(m)), registers.Micros(uint64(c.max))
		}
	}
	return 0, 0, 0
}
