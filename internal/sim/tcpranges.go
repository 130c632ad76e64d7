package sim

import "slices"

// ranges is a set of bytes: sorted, disjoint ranges that do not touch. It is the receiver's
// reassembly state and the sender's scoreboard, and reuses its memory.
type ranges []Range

// find returns the index of the first range that ends after x.
func (s ranges) find(x int64) int {
	lo, hi := 0, len(s)
	for lo < hi {
		if m := (lo + hi) / 2; s[m].To > x {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

// add adds a range and returns the number of its bytes that are new.
func (s *ranges) add(r Range) (fresh int64) {
	if r.To <= r.From {
		return 0
	}
	list := *s
	first := list.find(r.From - 1) // ranges that touch are merged
	last := first
	for last < len(list) && list[last].From <= r.To {
		fresh -= list[last].To - list[last].From
		r.From, r.To = min(r.From, list[last].From), max(r.To, list[last].To)
		last++
	}
	fresh += r.To - r.From
	switch {
	case first == last:
		*s = slices.Insert(list, first, r)
	default:
		list[first] = r
		*s = slices.Delete(list, first+1, last)
	}
	return fresh
}

// drop removes the bytes below x and returns their number.
func (s *ranges) drop(x int64) (gone int64) {
	list := *s
	n := list.find(x)
	for _, r := range list[:n] {
		gone += r.To - r.From
	}
	if n < len(list) && list[n].From < x {
		gone += x - list[n].From
		list[n].From = x
	}
	if n > 0 {
		*s = append(list[:0], list[n:]...)
	}
	return gone
}

// top returns the end of the last range, or 0.
func (s ranges) top() int64 {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1].To
}

// gap returns the first gap at or after x: its first byte, and the start of the next range, or
// end if none follows.
func (s ranges) gap(x, end int64) (from, to int64) {
	i := s.find(x)
	if i < len(s) && s[i].From <= x {
		x = s[i].To
		i++
	}
	if i < len(s) {
		end = min(end, s[i].From)
	}
	return x, end
}

// within returns the number of bytes of the set between from and to.
func (s ranges) within(from, to int64) (n int64) {
	for i := s.find(from); i < len(s) && s[i].From < to; i++ {
		n += min(s[i].To, to) - max(s[i].From, from)
	}
	return n
}

// lost implements IsLost of RFC 6675 for all bytes at once. Bytes below the result that are not
// in the set count as lost, because at least threshold ranges, or more than threshold-1 segments,
// have arrived above them. The result is 0 if no byte counts as lost.
func (s ranges) lost(threshold int, segment int64) int64 {
	var bytes int64
	for i := len(s) - 1; i >= 0; i-- {
		bytes += s[i].To - s[i].From
		if len(s)-i >= threshold || bytes > int64(threshold-1)*segment {
			return s[i].From
		}
	}
	return 0
}
