package lookup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The indices agree with linear searches.

func TestExactIndexAgainstMap(t *testing.T) {
	for words := 1; words <= 3; words++ {
		r := rand.New(rand.NewPCG(uint64(words), 1))
		x, want := NewExact(words), map[[3]uint64]int32{}
		for i := range int32(20000) {
			var k [3]uint64
			for j := range words {
				k[j] = r.Uint64N(40)
			}
			key := k[:words]
			switch r.IntN(3) {
			case 0:
				x.Remove(key)
				delete(want, k)
			default:
				x.Insert(key, i)
				want[k] = i
			}
			for j := range words {
				k[j] = r.Uint64N(40)
			}
			v, ok := want[k]
			if !ok {
				v = None
			}
			if got := x.Find(k[:words]); got != v {
				t.Fatalf("%d words, step %d: find(%v) = %d, want %d", words, i, k, got, v)
			}
		}
		if x.used != len(want) {
			t.Errorf("%d words: %d keys, want %d", words, x.used, len(want))
		}
	}
}

type prefixRule struct {
	exact  uint64
	prefix []uint64
	length int
	val    int32
}

// covers decides bit by bit; prefixes are least significant word first.
func (p *prefixRule) covers(exact uint64, key []uint64, width int) bool {
	if p.exact != exact {
		return false
	}
	for i := range p.length {
		bit := width - 1 - i
		if (p.prefix[bit/64]^key[bit/64])>>(bit%64)&1 != 0 {
			return false
		}
	}
	return true
}

func TestLPMAgainstLinearScan(t *testing.T) {
	for _, width := range []int{1, 6, 9, 32, 64, 65, 128} {
		for _, exact := range []int{0, 1} {
			t.Run(fmt.Sprintf("%d bits, %d exact", width, exact), func(t *testing.T) { testLPM(t, width, exact) })
		}
	}
}

func testLPM(t *testing.T, width, exact int) {
	r := rand.New(rand.NewPCG(uint64(width), uint64(exact)))
	x := NewLPM(exact, width)
	var rules []prefixRule
	random := func() (uint64, []uint64) {
		key := make([]uint64, wordsOf(width))
		for i := range key {
			// Few values, so that prefixes nest.
			key[i] = r.Uint64() & r.Uint64() & r.Uint64()
		}
		wideMask(key, width)
		return uint64(r.IntN(1 + 2*exact)), key
	}
	join := func(e uint64, key []uint64) []uint64 { return append(slices.Repeat([]uint64{e}, exact), key...) }
	for i := range int32(2000) {
		e, key := random()
		length := r.IntN(width + 1)
		at := slices.IndexFunc(rules, func(o prefixRule) bool {
			return o.length == length && o.covers(e, key, width)
		})
		switch {
		case r.IntN(3) == 0:
			x.Remove(join(e, key), length)
			if at >= 0 {
				rules = slices.Delete(rules, at, at+1)
			}
		case at >= 0:
			x.Insert(join(e, key), length, i)
			rules[at].val = i
		default:
			x.Insert(join(e, key), length, i)
			rules = append(rules, prefixRule{e, slices.Clone(key), length, i})
		}
		e, key = random()
		want, best := None, -1
		for _, o := range rules {
			if o.length > best && o.covers(e, key, width) {
				want, best = o.val, o.length
			}
		}
		if got := x.Find(join(e, key)); got != want {
			t.Fatalf("step %d: find(%d, %x) = %d, want %d", i, e, key, got, want)
		}
	}
}

func TestTernaryAgainstLinearScan(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 5))
		k := &ternaryKey{}
		for _, w := range []int{8, 13, 32, 64, 128} {
			k.fields = append(k.fields, ternaryKeyField{Place{Word: k.words, Width: w}, wordsOf(w)})
			k.words += wordsOf(w)
		}
		x := NewTernary(k.places())
		rules := map[int]TernaryEntry{}
		for i := range 1500 {
			slot := r.IntN(300)
			if _, ok := rules[slot]; ok {
				x.Remove(slot)
				delete(rules, slot)
			} else {
				e := randomRule(r, k, r.IntN(50))
				x.Insert(slot, e)
				rules[slot] = e
			}
			for range 3 {
				key := randomKey(r, k, rules)
				if got, want := x.Find(key), scan(rules, key); got != want {
					t.Fatalf("seed %d, step %d: find(%x) = %d, want %d", seed, i, key, got, want)
				}
			}
		}
	}
}

func randomRule(r *rand.Rand, k *ternaryKey, priority int) TernaryEntry {
	e := TernaryEntry{Priority: priority}
	for i, f := range k.fields {
		d := TernaryField{Word: f.Word, Value: make([]uint64, f.words), Mask: make([]uint64, f.words)}
		kind := r.IntN(4)
		for j := range d.Value {
			d.Value[j] = r.Uint64()
			switch kind {
			case 0:
				d.Mask[j] = ^uint64(0)
			case 1:
				d.Mask[j] = r.Uint64() & r.Uint64()
			}
		}
		wideMask(d.Mask, f.Width)
		if kind == 3 && i != 3 {
			d.High = make([]uint64, f.words)
			for j := range d.High {
				d.High[j] = r.Uint64()
			}
			wideMask(d.Value, f.Width)
			wideMask(d.High, f.Width)
			if compare(d.Value, d.High) > 0 {
				d.Value, d.High = d.High, d.Value
			}
			e.Ranges = true
		} else {
			for j := range d.Value {
				d.Value[j] &= d.Mask[j]
			}
		}
		e.Fields = append(e.Fields, d)
	}
	return e
}

// randomKey returns a key that matches some rule, with a few bits changed.
func randomKey(r *rand.Rand, k *ternaryKey, rules map[int]TernaryEntry) []uint64 {
	key := make([]uint64, k.words)
	for i := range key {
		key[i] = r.Uint64()
	}
	for _, e := range rules {
		for _, f := range e.Fields {
			for j, v := range f.Value {
				m := f.Mask[j]
				if f.High != nil {
					m = ^uint64(0)
				}
				key[f.Word+j] = v&m | key[f.Word+j]&^m
			}
		}
		break
	}
	if r.IntN(3) == 0 {
		key[r.IntN(len(key))] ^= 1 << r.IntN(64)
	}
	for _, f := range k.fields {
		wideMask(key[f.Word:f.Word+f.words], f.Width)
	}
	return key
}

func scan(rules map[int]TernaryEntry, key []uint64) int32 {
	best := None
	for slot, e := range rules {
		if matches(e, key) && (best == None || e.Priority < rules[int(best)].Priority ||
			e.Priority == rules[int(best)].Priority && slot < int(best)) {
			best = int32(slot)
		}
	}
	return best
}

func matches(e TernaryEntry, key []uint64) bool {
	for _, f := range e.Fields {
		k := key[f.Word : f.Word+len(f.Value)]
		if f.High != nil {
			if compare(k, f.Value) < 0 || compare(k, f.High) > 0 {
				return false
			}
			continue
		}
		for j, v := range k {
			if v&f.Mask[j] != f.Value[j] {
				return false
			}
		}
	}
	return true
}

// A ternaryKey is a lookup key of fields, each in its own words.
type ternaryKey struct {
	fields []ternaryKeyField
	words  int
}

type ternaryKeyField struct {
	Place
	words int
}

func (k *ternaryKey) places() (list []Place) {
	for _, f := range k.fields {
		list = append(list, f.Place)
	}
	return list
}

func wordsOf(width int) int { return (width + 63) / 64 }

func mask64(width int) uint64 { return 1<<width - 1 }

// wideMask clears the bits above width.
func wideMask(key []uint64, width int) {
	for i := range key {
		if left := width - 64*i; left < 64 {
			key[i] &= mask64(max(left, 0))
		}
	}
}
