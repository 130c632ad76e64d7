package cell

import (
	"fmt"
	"math/big"
	"math/bits"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A mathUnit is the coarse arithmetic of Tofino's stateful ALUs: a function of
// a number x of 32 bits by a table of 16 values. With e the place of the
// leading 1 of x (0 for x = 0),
//
//	shift  0   index x 2^(3-e), power  e
//	shift  1   index x 2^(3-e), power 2e
//	shift -1   index x 2^(3-e) with e rounded up to an even number, power e/2
//
// The result is table[index] 2^(scale ± power), where inverting negates the
// power, cut to 32 bits; it is 0 if the exponent is outside ±31. The index is 8
// to 15, or 4 to 15 for roots, and 0 only for x = 0.
type mathUnit struct {
	shift, scale int
	invert       bool
	table        [16]uint32
}

func (m *mathUnit) of(x uint32) uint32 {
	lead := max(bits.Len32(x)-1, 0)
	if m.shift < 0 {
		lead += lead & 1
	}
	power := lead
	switch m.shift {
	case 1:
		power = 2 * lead
	case -1:
		power = lead / 2
	}
	if m.invert {
		power = -power
	}
	v := m.table[uint64(x)<<3>>lead&15]
	switch power += m.scale; {
	case power < -31 || power > 31:
		return 0
	case power < 0:
		return v >> -power
	}
	return v << power
}

// LinkMathUnit links math_unit. Its parameters are the destination, x, shift,
// invert, scale, and the table, one byte per value, the last one first.
func LinkMathUnit(l *vector.Linker, a []*bmv2.Expr) (vector.Step, error) {
	dst, err := l.Place(a[0])
	if err != nil {
		return nil, err
	}
	x, err := l.Number(a[1])
	if err != nil {
		return nil, err
	}
	var c [4]*big.Int
	for i := range c {
		if a[i+2].Type != bmv2.TypeHexstr {
			return nil, fmt.Errorf("%v is not a constant", a[i+2])
		}
		if c[i], err = bmv2.ParseHex(a[i+2].Hex); err != nil {
			return nil, err
		}
	}
	shift, invert, scale, table := c[0], c[1], c[2], c[3]
	if shift.CmpAbs(big.NewInt(1)) > 0 || scale.CmpAbs(big.NewInt(32)) > 0 || table.Sign() < 0 || table.BitLen() > 128 {
		return nil, fmt.Errorf("invalid math unit: shift %v, scale %v, table %v", shift, scale, table)
	}
	m := &mathUnit{shift: int(shift.Int64()), scale: int(scale.Int64()), invert: invert.Sign() != 0}
	for i, b := range table.FillBytes(make([]byte, 16)) {
		m.table[15-i] = uint32(b)
	}
	get, set := x.Low(), dst.Set()
	return func(p *vector.State) { set(p, uint64(m.of(uint32(get(p))))) }, nil
}
