package lookup

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkLPM(b *testing.B) {
	x := NewLPM(0, 32)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range int32(100000) {
		length := 16 + r.IntN(17)
		x.Insert([]uint64{uint64(r.Uint32())}, length, i)
	}
	keys := make([][]uint64, 1<<16)
	for i := range keys {
		keys[i] = []uint64{uint64(r.Uint32())}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		x.Find(keys[i%len(keys)])
	}
}

func BenchmarkTernary(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x, keys := acl(n)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				x.Find(keys[i%len(keys)])
			}
		})
	}
}

// acl is an access list over a 5-tuple with random prefixes and wildcards, and
// keys that often match.
func acl(n int) (*Ternary, [][]uint64) {
	k := &ternaryKey{words: 5}
	for i, w := range []int{32, 32, 8, 16, 16} {
		k.fields = append(k.fields, ternaryKeyField{Place{Word: i, Width: w}, 1})
	}
	x := NewTernary(k.places())
	r := rand.New(rand.NewPCG(3, 4))
	var rules []TernaryEntry
	for i := range n {
		e := TernaryEntry{Priority: r.IntN(n)}
		for f, w := range []int{32, 32, 8, 16, 16} {
			var m uint64
			switch {
			case f < 2:
				m = mask64(32) &^ mask64(r.IntN(25))
			case r.IntN(2) == 0:
				m = mask64(w)
			}
			e.Fields = append(e.Fields, TernaryField{Word: f, Mask: []uint64{m}, Value: []uint64{r.Uint64() & m}})
		}
		x.Insert(i, e)
		rules = append(rules, e)
	}
	var keys [][]uint64
	for range 4096 {
		e := rules[r.IntN(n)]
		key := make([]uint64, 5)
		for f := range key {
			key[f] = (e.Fields[f].Value[0] | r.Uint64()&^e.Fields[f].Mask[0]) & mask64(k.fields[f].Width)
		}
		keys = append(keys, key)
	}
	return x, keys
}
