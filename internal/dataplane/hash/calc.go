package hash

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Calculation hashes a list of inputs: the fields in order without padding,
// without fields of invalid headers, then the payload if requested.
type Calculation struct {
	name    string
	Inputs  []Input
	Payload bool
	Algo    Hasher
	buf     []byte
	AlgoID  string

	Terms      []sumTerm // the fields of a checksum over one header
	TermsValid int       // word with the validity of their header

	Hash *bmv2.Hash // a hash of Tofino that the control plane can change; nil: not changeable
	Set  *Matrix    // the control plane's function; nil: the program's
	own  Function   // the program's function
	bits int        // number of input bits
}

// An Input is one part of the inputs: a run of fields of one header (or of
// metadata) with at most 56 bits together, a wider field, a whole header, or a
// constant.
type Input struct {
	Parts []vector.Part
	width int
	valid int // word that holds the header's validity
	// Always is set for metadata and constants, which are always valid.
	Always bool

	wide  *vector.Field  // a field too wide for a run
	whole *vector.Header // a whole header, as in the packet
	words []uint64       // a constant
}

// NewCalculation links a calculation of the program.
func NewCalculation(l *vector.Linker, c *bmv2.Calculation) (*Calculation, error) {
	k := &Calculation{name: c.Name, AlgoID: c.Algo}
	var err error
	if c.CRC != nil {
		k.Algo = crcOf(c.CRC)
	} else if k.Algo, err = New(c.Algo); err != nil {
		return nil, err
	}
	k.Inputs, k.Payload, err = LinkInputs(l, c.Input)
	k.Terms, k.TermsValid = k.sumTerms()
	if err == nil && c.Hash != nil {
		k.Hash = c.Hash
		for _, in := range k.Inputs {
			k.bits += in.width
		}
		k.own, err = functionOf(c)
	}
	return k, err
}

// Extends reports whether the algorithm has fewer bits than the program uses.
func (k *Calculation) Extends() bool { return k.Hash != nil && k.own.Width < k.Hash.Width }

// LinkInputs links inputs and joins neighbouring fields to runs. payload reports
// whether the payload follows them.
func LinkInputs(l *vector.Linker, list []*bmv2.Expr) (ins []Input, payload bool, err error) {
	for _, e := range list {
		if e.Type == bmv2.TypePayload {
			payload = true
			continue
		}
		in, err := linkInput(l, e)
		if err != nil {
			return nil, false, err
		}
		if last := len(ins) - 1; last < 0 || !ins[last].join(in) {
			ins = append(ins, in)
		}
	}
	return ins, payload, nil
}

// join adds the next input to a run if both are valid together.
func (in *Input) join(next Input) bool {
	if len(in.Parts) == 0 || len(next.Parts) == 0 || in.width+next.width > num.MaxPut ||
		in.Always != next.Always || !in.Always && in.valid != next.valid {
		return false
	}
	for i := range in.Parts {
		in.Parts[i].Shift += next.width
	}
	in.Parts = append(in.Parts, next.Parts...)
	in.width += next.width
	return true
}

func linkInput(l *vector.Linker, e *bmv2.Expr) (Input, error) {
	switch e = e.Unwrap(); e.Type {
	case bmv2.TypeField:
		f, err := l.FieldRef(e)
		if err != nil {
			return Input{}, err
		}
		h := l.Layout.HeaderNames[e.Name]
		in := Input{valid: h.Valid(), Always: h.Metadata}
		in.width = f.Width
		if f.Width > num.MaxPut || f.VarLen {
			in.wide = &f
		} else {
			in.Parts = []vector.Part{{Off: f.Off, Mask: num.Mask64(f.Width), Width: f.Width}}
		}
		return in, nil
	case bmv2.TypeHexstr:
		v, err := bmv2.ParseHex(e.Hex)
		if err != nil {
			return Input{}, err
		}
		if e.Bitwidth <= 0 || e.Bitwidth > vector.MaxWords {
			return Input{}, fmt.Errorf("constant %s without a bitwidth", e.Hex)
		}
		return Input{Always: true, words: num.OfBig(v, num.Words(e.Bitwidth)), width: e.Bitwidth}, nil
	case bmv2.TypeHeader:
		h := l.Layout.HeaderNames[e.Name]
		if h == nil {
			return Input{}, fmt.Errorf("unknown header %q", e.Name)
		}
		return Input{valid: h.Valid(), Always: h.Metadata, whole: h}, nil
	}
	return Input{}, fmt.Errorf("%s cannot be an input of a calculation", e.Type)
}

// AppendInputs appends the inputs of p to buf, and omits fields of invalid headers.
func AppendInputs(buf []byte, ins []Input, p *vector.State) []byte {
	b := num.BitWriter{Buf: buf}
	for i := range ins {
		if in := &ins[i]; in.Always || p.W[in.valid] != 0 {
			in.write(&b, p)
		}
	}
	return b.Finish()
}

func (in *Input) write(b *num.BitWriter, p *vector.State) {
	switch {
	case in.Parts != nil:
		var v uint64
		for j := range in.Parts {
			q := &in.Parts[j]
			v |= p.W[q.Off] & q.Mask << uint(q.Shift)
		}
		b.Put(v, in.width)
	case in.wide != nil:
		in.wide.Write(b, p.W)
	case in.whole != nil:
		in.whole.Write(b, p)
	default:
		b.PutWords(in.words, in.width)
	}
}

// Output computes the hash for p.
func (k *Calculation) Output(p *vector.State) uint64 {
	if k.Terms != nil {
		return k.sumFields(p)
	}
	if k.Set != nil {
		// Write all inputs, with zeros for the fields of invalid headers.
		w := num.BitWriter{Buf: k.buf[:0]}
		for i := range k.Inputs {
			in := &k.Inputs[i]
			if in.Always || p.W[in.valid] != 0 {
				in.write(&w, p)
				continue
			}
			for n := in.width; n > 0; n -= 32 {
				w.Put(0, min(n, 32))
			}
		}
		k.buf = w.Finish()
		return k.Set.Sum(k.buf)
	}
	k.buf = AppendInputs(k.buf[:0], k.Inputs, p)
	if k.Payload {
		k.buf = append(k.buf, p.Payload()...)
	}
	v := k.Algo.Sum(k.buf)
	if k.Hash != nil {
		v = k.own.extended(v, k.Hash.Width)
	}
	return v
}

// A sumTerm is a field in an Internet checksum that is computed in the vector. The
// checksum adds 16-bit words modulo 65535. Modulo 65535, 2^16 equals 1. So a field
// contributes its value shifted to its position within a 16-bit word, even if it
// spans several words. No buffer is needed.
type sumTerm struct {
	Off   int
	Mask  uint64
	Shift uint
}

// maxSummed is the widest field that can be shifted by 15 bits within a word.
const maxSummed = 48

// sumTerms returns the inputs of a checksum as words of the vector, with the
// word that holds their validity. It returns nil unless they are fields of one
// header.
func (k *Calculation) sumTerms() (terms []sumTerm, valid int) {
	if k.AlgoID != "csum16" && k.AlgoID != "cksum16" || k.Payload || len(k.Inputs) == 0 {
		return nil, 0
	}
	valid, bits := k.Inputs[0].valid, 0
	for _, in := range k.Inputs {
		if in.Parts == nil || in.Always || in.valid != valid {
			return nil, 0
		}
		for _, q := range in.Parts {
			if q.Width > maxSummed {
				return nil, 0
			}
			bits += q.Width
			terms = append(terms, sumTerm{Off: q.Off, Mask: q.Mask, Shift: uint(-bits & 15)})
		}
	}
	return terms, valid
}

// sumFields returns the checksum of the terms for p.
func (k *Calculation) sumFields(p *vector.State) uint64 {
	var sum uint64
	if p.W[k.TermsValid] != 0 {
		for i := range k.Terms {
			t := &k.Terms[i]
			v := p.W[t.Off] & t.Mask << t.Shift
			sum += v>>32 + v&0xffffffff
		}
	}
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return ^sum & 0xffff
}
