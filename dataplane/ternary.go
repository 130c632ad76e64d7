package dataplane

import "math/bits"

// A ternaryIndex matches keys against values under masks and against ranges,
// and returns the match with the smallest priority number. It is an aggregated
// bit vector (Baboescu, Varghese: "Scalable packet classification"): for each
// byte of the key and each of its 256 values a vector with one bit per entry
// says which entries that byte lets through; entries that do not look at the
// byte are in a vector of their own. The conjunction over all bytes leaves the
// matching entries; a second level with one bit per word of the first skips
// the words that have none. The work for n entries is about n/64 loads in the
// worst case and a few in the usual one, whatever the masks are.
type ternaryIndex struct {
	bytes   []keyByte
	rows    []uint64 // [byte][value or any][words]
	sums    []uint64 // [byte][value or any][sumWords]
	words   int      // of a vector: entries/64
	sum     int      // of its second level
	entries []ternaryEntry
	live    int
}

// A keyByte is one byte of the lookup key.
type keyByte struct {
	word  int
	shift uint
	users int // entries that look at it
}

// anyRow is the row of the entries that do not look at a byte.
const (
	anyRow      = 256
	rowsPerByte = 257
)

// A ternaryEntry is what an entry wants of each word of the key.
type ternaryEntry struct {
	fields   []ternaryField
	priority int
	ranges   bool
	used     bool
}

// A ternaryField is the demand on one field, of words words from word on:
// value under mask, or between value and high (both included).
type ternaryField struct {
	word        int
	value, mask []uint64
	high        []uint64 // range if not nil
}

func newTernaryIndex(k *tableKey) *ternaryIndex {
	x := &ternaryIndex{}
	for _, f := range k.fields {
		for b := range bytesOf(f.width) {
			x.bytes = append(x.bytes, keyByte{word: f.word + b/8, shift: uint(b % 8 * 8)})
		}
	}
	x.grow(1)
	return x
}

// grow makes vectors of so many words.
func (x *ternaryIndex) grow(words int) {
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

func (x *ternaryIndex) set(row, slot int) {
	x.rows[row*x.words+slot/64] |= 1 << (slot % 64)
	x.sums[row*x.sum+slot/4096] |= 1 << (slot / 64 % 64)
}

func (x *ternaryIndex) unset(row, slot int) {
	w := &x.rows[row*x.words+slot/64]
	if *w &^= 1 << (slot % 64); *w == 0 {
		x.sums[row*x.sum+slot/4096] &^= 1 << (slot / 64 % 64)
	}
}

// insert puts e at a slot.
func (x *ternaryIndex) insert(slot int, e ternaryEntry) {
	for slot >= x.words*64 {
		x.grow(2 * x.words)
	}
	for slot >= len(x.entries) {
		x.entries = append(x.entries, ternaryEntry{})
	}
	e.used = true
	x.entries[slot] = e
	x.live++
	x.mark(slot, 1, (*ternaryIndex).set)
}

// remove takes the entry out of a slot.
func (x *ternaryIndex) remove(slot int) {
	x.mark(slot, -1, (*ternaryIndex).unset)
	x.entries[slot] = ternaryEntry{}
	x.live--
}

// mark sets or unsets the bits of the entry at slot.
func (x *ternaryIndex) mark(slot, users int, bit func(x *ternaryIndex, row, slot int)) {
	e := &x.entries[slot]
	b := 0
	for i := range e.fields {
		f := &e.fields[i]
		for ; b < len(x.bytes) && x.bytes[b].word < f.word+len(f.value); b++ {
			kb := &x.bytes[b]
			low, high, mask := f.demand(kb.word-f.word, kb.shift)
			if low == 0 && high == 255 || mask == 0 {
				bit(x, b*rowsPerByte+anyRow, slot)
				continue
			}
			kb.users += users
			for v := low; v <= high; v++ {
				if uint64(v)&mask == uint64(low)&mask || f.high != nil {
					bit(x, b*rowsPerByte+v, slot)
				}
			}
		}
	}
}

// demand is what a field wants of the byte at shift of its word: a value from
// low to high that equals low under mask. A range restricts a byte if the
// bytes above it leave no choice.
func (f *ternaryField) demand(word int, shift uint) (low, high int, mask uint64) {
	if f.high == nil {
		mask = f.mask[word] >> shift & 0xff
		low = int(f.value[word] >> shift & 0xff)
		return low, low | int(^mask&0xff), mask
	}
	for i := word; i < len(f.value); i++ {
		a, b := f.value[i], f.high[i]
		if i == word && shift < 56 {
			a, b = a>>(shift+8), b>>(shift+8)
		} else if i == word {
			continue
		}
		if a != b {
			return 0, 255, 0xff
		}
	}
	return int(f.value[word] >> shift & 0xff), int(f.high[word] >> shift & 0xff), 0xff
}

// find returns the slot of the best match, or none.
func (x *ternaryIndex) find(key []uint64) int32 {
	best := none
	switch {
	case x.live == 0:
		return none
	case x.words == 1: // nothing can be skipped
		return x.better(key, 0, none)
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

// better returns the best match of word w, or what there is if that is better.
func (x *ternaryIndex) better(key []uint64, w int, best int32) int32 {
	for m := x.match(key, w); m != 0; m &= m - 1 {
		slot := w*64 + bits.TrailingZeros64(m)
		if slot >= len(x.entries) {
			break
		}
		e := &x.entries[slot]
		if e.used && (best == none || e.priority < x.entries[best].priority) && (!e.ranges || e.inRanges(key)) {
			best = int32(slot)
		}
	}
	return best
}

// match is the conjunction of word w of the vectors that the key selects.
func (x *ternaryIndex) match(key []uint64, w int) uint64 {
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

// inRanges decides exactly what the bytes have decided roughly.
func (e *ternaryEntry) inRanges(key []uint64) bool {
	for i := range e.fields {
		f := &e.fields[i]
		if f.high == nil {
			continue
		}
		k := key[f.word : f.word+len(f.value)]
		if cmpUnsigned(k, f.value) < 0 || cmpUnsigned(k, f.high) > 0 {
			return false
		}
	}
	return true
}

func cmpUnsigned(a, b []uint64) int {
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
