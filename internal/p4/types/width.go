package types

import (
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// maxWidth bounds bit<W>, int<W> and varbit<W>. BMv2 documents have the same bound;
// p4c's is 2,048.
const maxWidth = 1 << 16

// WidthOf returns the number of bits that a value of type t takes in a packet. ok
// is false if that varies (varbit, unions) or if t cannot be in a packet.
func WidthOf(t Type) (bits int, ok bool) {
	lo, hi, ok := sizeRange(t)
	if !ok || lo != hi {
		return 0, false
	}
	return lo, true
}

// sizeRange returns the least and the greatest number of bits that a value of type
// t takes in a packet, if headers are valid.
func sizeRange(t Type) (lo, hi int, ok bool) {
	switch t := t.(type) {
	case *Basic:
		return 1, 1, t == Bool
	case *Bits:
		return t.Width, t.Width, true
	case *Varbit:
		return 0, t.Max, true
	case *Enum:
		if t.Repr == nil {
			return 0, 0, false
		}
		return t.Repr.Width, t.Repr.Width, true
	case *New:
		return sizeRange(t.Underlying)
	case *Stack:
		lo, hi, ok = sizeRange(t.Elem)
		return lo * t.Size, hi * t.Size, ok
	case *Tuple:
		return sumRange(t.Elems)
	case *Struct:
		ts := lists.Map(t.Fields, func(f Field) Type { return f.Type })
		if t.Kind == syntax.StructKindUnion {
			return unionRange(ts)
		}
		return sumRange(ts)
	}
	return 0, 0, false
}

func sumRange(ts []Type) (lo, hi int, ok bool) {
	for _, t := range ts {
		l, h, ok := sizeRange(t)
		if !ok {
			return 0, 0, false
		}
		lo, hi = lo+l, hi+h
	}
	return lo, hi, true
}

func unionRange(ts []Type) (lo, hi int, ok bool) {
	for i, t := range ts {
		l, h, ok := sizeRange(t)
		if !ok {
			return 0, 0, false
		}
		if i == 0 || l < lo {
			lo = l
		}
		hi = max(hi, h)
	}
	return lo, hi, true
}

// maxParts bounds the parts of a type: fields, elements, and type arguments in its
// name. A few lines can nest types to sizes that exceed any memory.
const maxParts = 1 << 16

// bounded reports a type that has too many parts.
func (c *checker) bounded(pos syntax.Pos, t Type) bool {
	left := maxParts
	if !parts(t, &left) {
		c.errorf(pos, "the type has more than the %d parts supported (docs/limits.md)", maxParts)
		return false
	}
	return true
}

// parts subtracts the number of parts of t from left. It returns false if there are
// too many.
func parts(t Type, left *int) bool {
	*left--
	for _, a := range argsOf(t) {
		if !parts(a, left) {
			return false
		}
	}
	switch t := t.(type) {
	case *Stack:
		before := *left
		if !parts(t.Elem, left) {
			return false
		}
		each := before - *left
		*left = before - each*t.Size
	case *List:
		return parts(t.Elem, left)
	case *Tuple:
		for _, e := range t.Elems {
			if !parts(e, left) {
				return false
			}
		}
	case *Struct:
		for _, f := range t.Fields {
			if !parts(f.Type, left) {
				return false
			}
		}
	}
	return *left >= 0
}
