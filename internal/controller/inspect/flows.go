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

// A FlowTable describes the occupancy of a table of flow slots.
type FlowTable struct {
	Register string        `json:"register"` // register of the flows' paths, or of their times
	Slots    int           `json:"slots"`
	Occupied int           `json:"occupied"` // slots that hold a path or a time
	Active   int           `json:"active"`   // occupied slots whose flow was active within Gap, or has a deadline in the future
	Gap      time.Duration `json:"gap_ns"`   // idle time after which a flow is new; 0: the program has none
	Aged     bool          `json:"has_ages"` // a register of times exists, so the ages are known

	// Ages of the occupied slots by the switch's clock. The median is accurate to a tenth.
	Youngest time.Duration `json:"youngest_ns"`
	Median   time.Duration `json:"median_ns"`
	Oldest   time.Duration `json:"oldest_ns"`

	// Paths counts the occupied slots by the index of their path in its group.
	Paths []int `json:"paths,omitempty"`

	// Collisions estimates the number of flows whose slot was already occupied: the number of
	// random flows that would occupy this many slots, minus the occupied slots.
	Collisions float64 `json:"collisions"`
}

// flowTables summarises the registers indexed by flow. It returns a table for each register of
// paths, or one for times.
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

// flowTable summarises one register. when, if not nil, holds the times of its flows.
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

// collisions estimates collisions by linear counting. With n random flows, a slot stays empty
// with probability (1-1/m)^n. So k of m occupied slots indicate ln(1-k/m)/ln(1-1/m) flows. A full
// table counts as having one empty slot, because any number of flows could fill it.
func collisions(occupied, slots int) float64 {
	if occupied == 0 || slots < 2 {
		return 0
	}
	free := max(1, slots-occupied)
	flows := math.Log(float64(free)/float64(slots)) / math.Log1p(-1/float64(slots))
	return max(0, flows-float64(occupied))
}

// ageCounts counts ages in µs by their three leading bits, which is accurate enough for a median
// and avoids sorting 65,536 ages.
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

// bucketOf returns the bucket of an age, from the exponent and the three bits after the leading
// one.
func bucketOf(age int64) int {
	v := uint64(age)
	if v < 8 {
		return int(v)
	}
	e := bits.Len64(v) - 4 // such that v>>e is 8 to 15
	return 8*(e+1) + int(v>>e)&7
}

// middleOf returns the age in the middle of a bucket.
func middleOf(bucket int) int64 {
	if bucket < 8 {
		return int64(bucket)
	}
	e := bucket/8 - 1
	return int64(8+bucket&7)<<e + int64(1)<<e/2
}

func (c *ageCounts) summary() (youngest, median, oldest time.Duration) {
	b := 0 // the bucket of the median
	for left := int32(c.count+1)/2 - c.buckets[0]; left > 0; left -= c.buckets[b] {
		b++
	}
	m := min(max(middleOf(b), c.min), c.max)
	return registers.Micros(uint64(c.min)), registers.Micros(uint64(m)), registers.Micros(uint64(c.max))
}
