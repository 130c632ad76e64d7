package lookup

import "math/bits"

// A Ternary matches keys against values under masks and against ranges, and returns
// the match with the smallest priority number. It is an aggregated bit vector
// (Baboescu, Varghese: "Scalable packet classification"). For each byte of the key
// and each of its 256 values, a vector with one bit per entry marks the entries
// that accept that byte. A separate vector holds the entries that ignore the byte.
// The conjunction of the vectors of all bytes contains the matching entries. A
// second level, with one bit per word of the first, skips words without matches. A
// lookup among n entries takes about n/64 loads in the worst case and usually a
// few, for any masks.
type Ternary struct {
	bytes   []keyByte
	rows    []uint64 // [byte][value or any][words]
	sums    []uint64 // [byte][value or any][sumWords]
	words   int      // words of a vector: entries/64
	sum     int      // words of its second level
	entries []TernaryEntry
	live    int
}

// A keyByte is one byte of the lookup key.
type keyByte struct {
	word  int
	shift uint
	users int // number of entries that depend on it
}

// A Place is the first word and the width of a field in the lookup key.
type Place struct{ Word, Width int }

// anyRow is the row of the entries that ignore a byte.
const (
	anyRow      = 256
	rowsPerByte = 257
)

// A TernaryEntry is the condition of an entry on each field of the key.
type TernaryEntry struct {
	Fields   []TernaryField
	Priority int
	Ranges   bool
	used     bool
}

// A TernaryField is the condition on one field, which begins at Word: Value
// under Mask, or between Value and High (both included).
type TernaryField struct {
	Word        int
	Value, Mask []uint64
	High        []uint64 // range if not nil
}

// NewTernary returns an empty index of keys with these fields.
func NewTernary(fields []Place) *Ternary {
	x := &Ternary{}
	for _, f := range fields {
		for b := range (f.Width + 7) / 8 {
			x.bytes = append(x.bytes, keyByte{word: f.Word + b/8, shift: uint(b % 8 * 8)})
		}
	}
	x.grow(1)
	return x
}

// grow enlarges the vectors to a number of words.
func (x *Ternary) grow(words int) {
	old := *x
	x.words, x.sum = words, (words+63)/64
	x.rows = make([]uint64, len(x.bytes)*rowsPerByte*x.words)
	x.sums = make([]uint64, len(x.bytes)*rowsPerByte*x.sum)
	for r := range len(x.bytes) * rowsPerByte {
		if old.words > 0 {
			copy(x.rows[r*x.words:], old.rows[r*old.words:][:old.words])
			copy(x.sums[r*x.sum:], old.sums[r*old.sum:][:old.sum])
		}
	}
}

func (x *Ternary) set(row, slot int) {
	x.rows[row*x.words+slot/64] |= 1 << (slot % 64)
	x.sums[row*x.sum+slot/4096] |= 1 << (slot / 64 % 64)
}

func (x *Ternary) unset(row, slot int) {
	w := &x.rows[row*x.words+slot/64]
	if *w &^= 1 << (slot % 64); *w == 0 {
		x.sums[row*x.sum+slot/4096] &^= 1 << (slot / 64 % 64)
	}
}

// Insert adds e at a slot.
func (x *Ternary) Insert(slot int, e TernaryEntry) {
	for slot >= x.words*64 {
		x.grow(2 * x.words)
	}
	for slot >= len(x.entries) {
		x.entries = append(x.entries, TernaryEntry{})
	}
	e.used = true
	x.entries[slot] = e
	x.live++
	x.mark(slot, 1, (*Ternary).set)
}

// Remove removes the entry at a slot.
func (x *Ternary) Remove(slot int) {
	x.mark(slot, -1, (*Ternary).unset)
	x.entries[slot] = TernaryEntry{}
	x.live--
}

// mark sets or unsets the bits of the entry at slot.
func (x *Ternary) mark(slot, users int, bit func(x *Ternary, row, slot int)) {
	e := &x.entries[slot]
	b := 0
	for i := range e.Fields {
		f := &e.Fields[i]
		for ; b < len(x.bytes) && x.bytes[b].word < f.Word+len(f.Value); b++ {
			kb := &x.bytes[b]
			low, high, mask := f.demand(kb.word-f.Word, kb.shift)
			if low == 0 && high == 255 || mask == 0 {
				bit(x, b*rowsPerByte+anyRow, slot)
				continue
			}
			kb.users += users
			for v := low; v <= high; v++ {
				if uint64(v)&mask == uint64(low)&mask || f.High != nil {
					bit(x, b*rowsPerByte+v, slot)
				}
			}
		}
	}
}

// demand returns the condition of a field on the byte at shift of its word: it must
// lie between low and high, and equal low under mask. A range restricts a byte only
// if the bytes above it have a single value.
func (f *TernaryField) demand(word int, shift uint) (low, high int, mask uint64) {
	if f.High == nil {
		mask = f.Mask[word] >> shift & 0xff
		low = int(f.Value[word] >> shift & 0xff)
		return low, low | int(^mask&0xff), mask
	}
	for i := word; i < len(f.Value); i++ {
		a, b := f.Value[i], f.High[i]
		if i == word && shift < 56 {
			a, b = a>>(shift+8), b>>(shift+8)
		} else if i == word {
			continue
		}
		if a != b {
			return 0, 255, 0xff
		}
	}
	return int(f.Value[word] >> shift & 0xff), int(f.High[word] >> shift & 0xff), 0xff
}

// Find returns the slot of the best match, or None.
func (x *Ternary) Find(key []uint64) int32 {
	best := None
	switch {
	case x.live == 0:
		return None
	case x.words == 1: // nothing can be skipped
		return x.better(key, 0, None)
	}
	for s := range x.sum {
		candidates := ^uint64(0)
		for i := range x.bytes {
			b := &x.bytes[i]
			if b.users == 0 {
				continue
			}
			row := i * rowsPerByte
			v := int(key[b.word] >> b.shift & 0xff)
			candidates &= x.sums[(row+v)*x.sum+s] | x.sums[(row+anyRow)*x.sum+s]
		}
		for ; candidates != 0; candidates &= candidates - 1 {
			w := s*64 + bits.TrailingZeros64(candidates)
			if w >= x.words {
				break
			}
			best = x.better(key, w, best)
		}
	}
	return best
}

// better returns the best match of word w, or best if that is better.
func (x *Ternary) better(key []uint64, w int, best int32) int32 {
	for m := x.match(key, w); m != 0; m &= m - 1 {
		slot := w*64 + bits.TrailingZeros64(m)
		if slot >= len(x.entries) {
			break
		}
		e := &x.entries[slot]
		if e.used && (best == None || e.Priority < x.entries[best].Priority) && (!e.Ranges || e.inRanges(key)) {
			best = int32(slot)
		}
	}
	return best
}

// match returns the conjunction of word w of the vectors that the key selects.
func (x *Ternary) match(key []uint64, w int) uint64 {
	m := ^uint64(0)
	for i := range x.bytes {
		b := &x.bytes[i]
		if b.users == 0 {
			continue
		}
		row := i * rowsPerByte
		v := int(key[b.word] >> b.shift & 0xff)
		if m &= x.rows[(row+v)*x.words+w] | x.rows[(row+anyRow)*x.words+w]; m == 0 {
			return 0
		}
	}
	return m
}

// inRanges checks exactly the ranges that the vectors check approximately.
func (e *TernaryEntry) inRanges(key []uint64) bool {
	for i := range e.Fields {
		f := &e.Fields[i]
		if f.High == nil {
			continue
		}
		k := key[f.Word : f.Word+len(f.Value)]
		if compare(k, f.Value) < 0 || compare(k, f.High) > 0 {
			return false
		}
	}
	return true
}

// compare compares numbers of equal length, lowest word first.
func compare(a, b []uint64) int {
	for i := len(a) - 1; i >= 0; i-- {
		switch {
		case a[i] < b[i]:
			return -1
		case a[i] > b[i]:
			return 1
		}
	}
	return 0
}
