package lower

import (
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A cell of a register holds the numbers of a value side by side, the first in the
// highest bits.

// readCell reads a cell as a value of type t.
func (l *lowerer) readCell(reg *instance, index *ex, t types.Type) value {
	st, isScalar := scalarOf(t)
	raw := l.temp(scalar{width: l.widthOf(t)})
	l.prim("register_read", raw, bmv2.Ref(bmv2.TypeRegisterArray, reg.name), index)
	if isScalar && st == raw.st {
		return raw
	}
	at := raw.st.width
	return l.cutOut(fieldEx(raw), t, &at)
}

// writeCell writes a value of type t to a cell.
func (l *lowerer) writeCell(reg *instance, index *ex, v value, t types.Type) {
	v = convert(v, t)
	l.prim("register_write", bmv2.Ref(bmv2.TypeRegisterArray, reg.name), index, l.joined(l.scalarsOf(v, t)))
}

// scalarsOf returns the numbers that a value of type t consists of.
func (l *lowerer) scalarsOf(v value, t types.Type) []*ex {
	switch v := v.(type) {
	case *header:
		return lists.Map(v.fields, fieldEx)
	case *literal:
		return v.fields
	}
	return l.flat(v, t)
}

// joined concatenates numbers, the first in the highest bits.
func (l *lowerer) joined(list []*ex) *ex {
	var all *ex
	for _, x := range list {
		if x.st.bool {
			x = boolData(x, scalar{width: 1})
		}
		x = cast(x, scalar{width: x.st.width})
		if all == nil {
			all = x
			continue
		}
		all = binary(syntax.Concat, all, x, scalar{width: all.st.width + x.st.width})
	}
	return all
}
