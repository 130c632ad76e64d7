package hash

import (
	"math/rand/v2"
	"testing"

	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// The checksum computed in the vector equals the checksum of the bytes.
func TestSumFields(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	for range 2000 {
		k := &Calculation{AlgoID: "csum16", Algo: Func(func(d []byte) uint64 { return uint64(Internet(d)) })}
		p := &vector.State{W: []uint64{1}}
		for total := 0; total < 1+r.IntN(300); {
			width := 1 + r.IntN(maxSummed)
			total += width
			in := Input{width: width, Parts: []vector.Part{{Off: len(p.W), Mask: num.Mask64(width), Width: width}}}
			// The sum ignores bits above a field's width.
			p.W = append(p.W, []uint64{r.Uint64(), 0, num.Mask64(width)}[r.IntN(3)])
			if last := len(k.Inputs) - 1; last < 0 || !k.Inputs[last].join(in) {
				k.Inputs = append(k.Inputs, in)
			}
		}
		if k.Terms, k.TermsValid = k.sumTerms(); k.Terms == nil {
			t.Fatalf("no sum of %v", k.Inputs)
		}
		for _, valid := range []uint64{1, 0} {
			p.W[0] = valid
			if got, want := k.sumFields(p), k.Algo.Sum(AppendInputs(nil, k.Inputs, p)); got != want {
				t.Fatalf("valid %d, %+v of %x: %#x, want %#x", valid, k.Terms, p.W, got, want)
			}
		}
	}
}
