package dataplane

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The indexes against lists that are searched from one end to the other.

func TestExactIndexAgainstMap(t *testing.T) {
	for words := 1; words <= 3; words++ {
		r := rand.New(rand.NewPCG(uint64(words), 1))
		x, want := newExactIndex(words), map[[3]uint64]int32{}
		for i := range int32(20000) {
			var k [3]uint64
			for j := range words {
				k[j] = r.Uint64N(40)
			}
			key := k[:words]
			switch r.IntN(3) {
			case 0:
				x.remove(key)
				delete(want, k)
			default:
				x.insert(key, i)
				want[k] = i
			}
			for j := range words {
				k[j] = r.Uint64N(40)
			}
			v, ok := want[k]
			if !ok {
				v = none
			}
			if got := x.find(k[:words]); got != v {
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
	x := newLPMIndex(exact, width)
	p := &Packet{ex: &machine{}}
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
			x.remove(join(e, key), length)
			if at >= 0 {
				rules = slices.Delete(rules, at, at+1)
			}
		case at >= 0:
			x.insert(join(e, key), length, i)
			rules[at].val = i
		default:
			x.insert(join(e, key), length, i)
			rules = append(rules, prefixRule{e, slices.Clone(key), length, i})
		}
		e, key = random()
		want, best := none, -1
		for _, o := range rules {
			if o.length > best && o.covers(e, key, width) {
				want, best = o.val, o.length
			}
		}
		if got := x.find(p, join(e, key)); got != want {
			t.Fatalf("step %d: find(%d, %x) = %d, want %d", i, e, key, got, want)
		}
	}
}

func TestTernaryAgainstLinearScan(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 5))
		k := &tableKey{}
		for _, w := range []int{8, 13, 32, 64, 128} {
			k.fields = append(k.fields, keyField{width: w, word: k.words, words: wordsOf(w)})
			k.words += wordsOf(w)
		}
		x := newTernaryIndex(k)
		rules := map[int]ternaryEntry{}
		for i := range 1500 {
			slot := r.IntN(300)
			if _, ok := rules[slot]; ok {
				x.remove(slot)
				delete(rules, slot)
			} else {
				e := randomRule(r, k, r.IntN(50))
				x.insert(slot, e)
				rules[slot] = e
			}
			for range 3 {
				key := randomKey(r, k, rules)
				if got, want := x.find(key), scan(rules, key); got != want {
					t.Fatalf("seed %d, step %d: find(%x) = %d, want %d", seed, i, key, got, want)
				}
			}
		}
	}
}

func randomRule(r *rand.Rand, k *tableKey, priority int) ternaryEntry {
	e := ternaryEntry{priority: priority}
	for i, f := range k.fields {
		d := ternaryField{word: f.word, value: make([]uint64, f.words), mask: make([]uint64, f.words)}
		kind := r.IntN(4)
		for j := range d.value {
			d.value[j] = r.Uint64()
			switch kind {
			case 0:
				d.mask[j] = ^uint64(0)
			case 1:
				d.mask[j] = r.Uint64() & r.Uint64()
			}
		}
		wideMask(d.mask, f.width)
		if kind == 3 && i != 3 {
			d.high = make([]uint64, f.words)
			for j := range d.high {
				d.high[j] = r.Uint64()
			}
			wideMask(d.value, f.width)
			wideMask(d.high, f.width)
			if cmpUnsigned(d.value, d.high) > 0 {
				d.value, d.high = d.high, d.value
			}
			e.ranges = true
		} else {
			for j := range d.value {
				d.value[j] &= d.mask[j]
			}
		}
		e.fields = append(e.fields, d)
	}
	return e
}

// randomKey is a key that some rule matches, with a few bits changed.
func randomKey(r *rand.Rand, k *tableKey, rules map[int]ternaryEntry) []uint64 {
	key := make([]uint64, k.words)
	for i := range key {
		key[i] = r.Uint64()
	}
	for _, e := range rules {
		for _, f := range e.fields {
			for j, v := range f.value {
				m := f.mask[j]
				if f.high != nil {
					m = ^uint64(0)
				}
				key[f.word+j] = v&m | key[f.word+j]&^m
			}
		}
		break
	}
	if r.IntN(3) == 0 {
		key[r.IntN(len(key))] ^= 1 << r.IntN(64)
	}
	for _, f := range k.fields {
		wideMask(key[f.word:f.word+f.words], f.width)
	}
	return key
}

func scan(rules map[int]ternaryEntry, key []uint64) int32 {
	best := none
	for slot, e := range rules {
		if matches(e, key) && (best == none || e.priority < rules[int(best)].priority ||
			e.priority == rules[int(best)].priority && slot < int(best)) {
			best = int32(slot)
		}
	}
	return best
}

func matches(e ternaryEntry, key []uint64) bool {
	for _, f := range e.fields {
		k := key[f.word : f.word+len(f.value)]
		if f.high != nil {
			if cmpUnsigned(k, f.value) < 0 || cmpUnsigned(k, f.high) > 0 {
				return false
			}
			continue
		}
		for j, v := range k {
			if v&f.mask[j] != f.value[j] {
				return false
			}
		}
	}
	return true
}

func TestHandlesLowestFirst(t *testing.T) {
	var h handles
	for i := range Handle(10) {
		if got := h.take(); got != i {
			t.Fatalf("take = %d, want %d", got, i)
		}
	}
	for _, i := range []Handle{7, 2, 9, 4} {
		h.release(i)
	}
	for _, want := range []Handle{2, 4, 7, 9, 10} {
		if got := h.take(); got != want {
			t.Errorf("take = %d, want %d", got, want)
		}
	}
}
