package model

// A Time is what the clock of a switch shows, 48 bits that wrap: microseconds,
// which takes nine years, or on hardware 1024 ns in the upper 32 bits and
// nothing in the others, which takes 73 minutes. What is asked of times are
// differences.
type Time uint64

const clockMask Time = 1<<48 - 1

// Since is the time that has passed from then to t, across a wrap as well.
func (t Time) Since(then Time) Time { return (t - then) & clockMask }

// After is the time d after t.
func (t Time) After(d Time) Time { return (t + d) & clockMask }

// signed is the time from then to t, negative if t is the earlier one: what is
// more than half the clock away has been.
func (t Time) signed(then Time) int64 { return int64((t-then)<<16) >> 16 }
