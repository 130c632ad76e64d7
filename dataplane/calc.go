package dataplane

import (
	"encoding/binary"
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/hash"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// A calculation hashes a list of inputs: the fields one after the other
// without padding, fields of invalid headers left out, then the payload if
// asked for.
type calculation struct {
	name    string
	inputs  []input
	payload bool
	algo    hash.Hasher
	buf     []byte
	algoID  string

	terms      []sumTerm // of a checksum over fields of one header
	termsValid int       // the word that says whether it is valid
}

// An input is a run of fields of one header (or of metadata) that have at most
// 56 bits together, a wider field, a whole header, or a constant.
type input struct {
	parts []vector.Part
	width int // of the parts or of the constant
	valid int // the word that says whether the header is valid
	// always is set for metadata and constants, which need no test.
	always bool

	wide  *vector.Field  // a field that does not fit a run
	whole *vector.Header // a header as it is in a packet
	words []uint64       // a constant
}

func (l *linker) calculation(c *bmv2.Calculation) (*calculation, error) {
	k := &calculation{name: c.Name, algoID: c.Algo}
	var err error
	if c.CRC != nil {
		k.algo = hash.CRCOf(c.CRC)
	} else if k.algo, err = hash.New(c.Algo); err != nil {
		return nil, err
	}
	k.inputs, k.payload, err = l.inputs(c.Input)
	k.terms, k.termsValid = k.sumTerms()
	return k, err
}

func (l *linker) inputs(list []*bmv2.Expr) (ins []input, payload bool, err error) {
	for _, e := range list {
		if e.Type == bmv2.TypePayload {
			payload = true
			continue
		}
		in, err := l.input(e)
		if err != nil {
			return nil, false, err
		}
		if last := len(ins) - 1; last < 0 || !ins[last].join(in) {
			ins = append(ins, in)
		}
	}
	return ins, payload, nil
}

// join adds a field to a run of fields that are valid together.
func (in *input) join(next input) bool {
	if len(in.parts) == 0 || len(next.parts) == 0 || in.width+next.width > num.MaxPut ||
		in.always != next.always || !in.always && in.valid != next.valid {
		return false
	}
	for i := range in.parts {
		in.parts[i].Shift += next.width
	}
	in.parts = append(in.parts, next.parts...)
	in.width += next.width
	return true
}

func (l *linker) input(e *bmv2.Expr) (input, error) {
	switch e = e.Unwrap(); e.Type {
	case bmv2.TypeField:
		f, err := l.FieldRef(e)
		if err != nil {
			return input{}, err
		}
		h := l.Layout.HeaderNames[e.Name]
		in := input{valid: h.Valid(), always: h.Metadata}
		if f.Width > num.MaxPut || f.VarLen {
			in.wide = &f
		} else {
			in.width = f.Width
			in.parts = []vector.Part{{Off: f.Off, Mask: num.Mask64(f.Width), Width: f.Width}}
		}
		return in, nil
	case bmv2.TypeHexstr:
		v, err := bmv2.ParseHex(e.Hex)
		if err != nil {
			return input{}, err
		}
		if e.Bitwidth <= 0 || e.Bitwidth > vector.MaxWords {
			return input{}, fmt.Errorf("constant %s without a bitwidth", e.Hex)
		}
		return input{always: true, words: num.OfBig(v, num.Words(e.Bitwidth)), width: e.Bitwidth}, nil
	case bmv2.TypeHeader:
		h := l.Layout.HeaderNames[e.Name]
		if h == nil {
			return input{}, fmt.Errorf("unknown header %q", e.Name)
		}
		return input{valid: h.Valid(), always: h.Metadata, whole: h}, nil
	}
	return input{}, fmt.Errorf("%s cannot be an input of a calculation", e.Type)
}

// appendInputs writes the inputs of p to buf. Fields of invalid headers are
// left out.
func appendInputs(buf []byte, ins []input, p *vector.State) []byte {
	b := num.BitWriter{Buf: buf}
	for i := range ins {
		in := &ins[i]
		switch {
		case !in.always && p.W[in.valid] == 0:
		case in.parts != nil:
			var v uint64
			for j := range in.parts {
				q := &in.parts[j]
				v |= p.W[q.Off] & q.Mask << uint(q.Shift)
			}
			b.Put(v, in.width)
		case in.wide != nil:
			in.wide.Write(&b, p.W)
		case in.whole != nil:
			in.whole.Write(&b, p)
		default:
			b.PutWords(in.words, in.width)
		}
	}
	return b.Finish()
}

// output computes the hash for p.
func (k *calculation) output(p *vector.State) uint64 {
	if k.terms != nil {
		return k.sumFields(p)
	}
	k.buf = appendInputs(k.buf[:0], k.inputs, p)
	if k.payload {
		k.buf = append(k.buf, p.Payload()...)
	}
	return k.algo.Sum(k.buf)
}

// SetCRC changes the parameters of a calculation with one of the algorithms
// crc8_custom, crc16_custom, crc32_custom and crc64_custom.
func (s *Switch) SetCRC(calculation string, c hash.CRC) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.calcs[calculation]
	if k == nil {
		return fmt.Errorf("unknown calculation %q", calculation)
	}
	t, ok := k.algo.(*hash.Table)
	if !ok || t.Width != c.Width || k.algoID == "crcCCITT" {
		return fmt.Errorf("calculation %s is no custom CRC of %d bits", calculation, c.Width)
	}
	k.algo = hash.NewCRC(c)
	return nil
}

// SetToeplitzKey changes the key of a calculation with the algorithm toeplitz: 4
// bytes or a multiple.
func (s *Switch) SetToeplitzKey(calculation string, key []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.calcs[calculation]
	if k == nil {
		return fmt.Errorf("unknown calculation %q", calculation)
	}
	t, ok := k.algo.(*hash.Toeplitz)
	switch {
	case !ok:
		return fmt.Errorf("calculation %s is no Toeplitz hash", calculation)
	case len(key) == 0 || len(key)%4 != 0:
		return fmt.Errorf("calculation %s: a key of %d bytes, want a multiple of 4", calculation, len(key))
	}
	t.Key = nil
	for ; len(key) > 0; key = key[4:] {
		t.Key = append(t.Key, binary.BigEndian.Uint32(key))
	}
	return nil
}
