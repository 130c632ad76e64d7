package stf

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// maxDigits exceeds the number of binary digits of the widest value.
const maxDigits = 4096

// number reads a number in base 2, 8, 10 or 16 by its prefix.
func number(s string) (*big.Int, error) {
	base, digits := 10, s
	if len(s) > 1 && s[0] == '0' {
		switch s[1] {
		case 'x', 'X':
			base, digits = 16, s[2:]
		case 'b', 'B':
			base, digits = 2, s[2:]
		case 'o', 'O':
			base, digits = 8, s[2:]
		}
	}
	if len(digits) > maxDigits { // parsing takes quadratic time
		return nil, fmt.Errorf("%q is too large", s)
	}
	v, ok := new(big.Int).SetString(digits, base)
	if !ok || strings.ContainsAny(digits, "_+-") {
		return nil, fmt.Errorf("%q is not a number", s)
	}
	return v, nil
}

func numbers32(list []string) ([]uint32, error) {
	var out []uint32
	for _, s := range list {
		v, err := number(s)
		if err != nil {
			return nil, err
		}
		if !v.IsUint64() || v.Uint64() > 1<<32-1 {
			return nil, fmt.Errorf("%s is too large", s)
		}
		out = append(out, uint32(v.Uint64()))
	}
	return out, nil
}

// digitBits returns the width of a digit of a number that may have wildcards.
func digitBits(s string) (bits int, digits string, err error) {
	if len(s) > 2 && s[0] == '0' {
		switch s[1] {
		case 'x', 'X':
			return 4, s[2:], nil
		case 'b', 'B':
			return 1, s[2:], nil
		case 'o', 'O':
			return 3, s[2:], nil
		}
	}
	return 0, "", fmt.Errorf("decimal value %s has no digits to match one by one", s)
}

// wildcards splits a number with * digits into value and mask. The mask covers
// only the digits written, so 0x0 compares four bits.
func wildcards(s string) (value, mask *big.Int, err error) {
	bits, digits, err := digitBits(s)
	if err != nil {
		return nil, nil, err
	}
	value, err = number(s[:2] + strings.ReplaceAll(digits, "*", "0"))
	mask = new(big.Int)
	for _, d := range digits {
		mask.Lsh(mask, uint(bits))
		if d != '*' {
			mask.Or(mask, big.NewInt(1<<bits-1))
		}
	}
	return value, mask, err
}

// matchValue reads the value of a key field.
func matchValue(f dataplane.KeyField, s string) (program.Match, error) {
	switch f.Kind {
	case program.MatchTernary:
		return ternary(f, s)
	case program.MatchLPM:
		return prefix(f, s)
	case program.MatchRange:
		// The range is LOW->HIGH or one number.
		left, right, ok := strings.Cut(s, "->")
		if !ok {
			right = left
		}
		low, err := number(left)
		if err != nil {
			return program.Match{}, err
		}
		high, err := number(right)
		if err != nil {
			return program.Match{}, err
		}
		return program.Match{Value: low.Bytes(), High: high.Bytes()}, nil
	}
	v, err := number(s)
	if err != nil {
		return program.Match{}, err
	}
	return program.Match{Value: notNil(v)}, nil
}

// notNil returns the number in bytes, at least one: an optional match without a
// value matches anything.
func notNil(v *big.Int) []byte { return v.FillBytes(make([]byte, max(1, (v.BitLen()+7)/8))) }

func ternary(f dataplane.KeyField, s string) (program.Match, error) {
	if left, right, ok := strings.Cut(s, "&&&"); ok {
		v, err := number(left)
		if err != nil {
			return program.Match{}, err
		}
		m, err := number(right)
		if err != nil {
			return program.Match{}, err
		}
		return program.Match{Value: v.Bytes(), Mask: m.Bytes()}, nil
	}
	v, m, err := wildcards(s)
	if err != nil {
		return program.Match{}, err
	}
	// Digits may be wider than the field.
	all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(f.Width)), big.NewInt(1))
	return program.Match{Value: v.And(v, all).Bytes(), Mask: m.And(m, all).Bytes()}, nil
}

// prefix reads VALUE/LENGTH, or digits that end in *.
func prefix(f dataplane.KeyField, s string) (program.Match, error) {
	if left, right, ok := strings.Cut(s, "/"); ok {
		v, err := number(left)
		if err != nil {
			return program.Match{}, err
		}
		n, err := strconv.Atoi(right)
		return program.Match{Value: v.Bytes(), PrefixLen: n}, err
	}
	bits, digits, err := digitBits(s)
	if err != nil {
		v, err := number(s)
		if err != nil {
			return program.Match{}, err
		}
		return program.Match{Value: v.Bytes(), PrefixLen: f.Width}, nil
	}
	v, err := number(strings.ReplaceAll(s, "*", "0"))
	if err != nil {
		return program.Match{}, err
	}
	n := bits * (len(digits) - strings.Count(digits, "*"))
	return program.Match{Value: v.Bytes(), PrefixLen: min(n, f.Width)}, nil
}

// anything returns the match of a field that an entry does not mention:
// everything, or zero for an exact match.
func anything(f dataplane.KeyField) program.Match {
	switch f.Kind {
	case program.MatchRange:
		all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(f.Width)), big.NewInt(1))
		return program.Match{High: all.Bytes()}
	case program.MatchExact, program.MatchValid:
		return program.Match{Value: []byte{0}}
	}
	return program.Match{}
}

// bitsOf returns the bits high to low of a number in bytes.
func bitsOf(b []byte, high, low int) []byte {
	v := new(big.Int).Rsh(new(big.Int).SetBytes(b), uint(low))
	return notNil(v.And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(high-low+1)), big.NewInt(1))))
}
