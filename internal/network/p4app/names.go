package p4app

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// names finds what a P4Info describes, by full names and by those that end like
// one: ipv4_lpm for MyIngress.ipv4_lpm.
type names struct {
	info    *configv1.P4Info
	actions map[uint32]*configv1.Action
}

// A described thing has a name.
type described interface{ GetPreamble() *configv1.Preamble }

// find finds a thing of a list. What is told if there is none names the nearest.
func find[T described](list []T, kind, name string) (T, error) {
	var found []T
	for _, x := range list {
		switch p := x.GetPreamble(); {
		case p.GetName() == name || p.GetAlias() == name:
			return x, nil
		case strings.HasSuffix(p.GetName(), "."+name):
			found = append(found, x)
		}
	}
	var none T
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return none, fmt.Errorf("there is no %s %s%s", kind, name, nearest(list, name))
	}
	return none, fmt.Errorf("%s %s: there are %s and %s, name one in full", kind, name, found[0].GetPreamble().GetName(), found[1].GetPreamble().GetName())
}

// nearest is what a name may have been meant to be.
func nearest[T described](list []T, name string) string {
	best, distance := "", len(name)/2+1
	for _, x := range list {
		full := x.GetPreamble().GetName()
		short := full[strings.LastIndexByte(full, '.')+1:]
		for _, candidate := range []string{full, short} {
			if d := plain.Distance(strings.ToLower(name), strings.ToLower(candidate)); d < distance {
				best, distance = full, d
			}
		}
	}
	switch {
	case best != "":
		return "; did you mean " + best + "?"
	case len(list) == 0:
		return ": the program has none"
	case len(list) <= 4:
		all := lists.Map(list, func(x T) string { return x.GetPreamble().GetName() })
		return ", but " + strings.Join(all, ", ")
	}
	return ""
}

func (n *names) table(name string) (*configv1.Table, error) {
	return find(n.info.GetTables(), "table", name)
}

// action finds one of a list of a table's or a profile's.
func (n *names) action(of string, refs []*configv1.ActionRef, name string, isDefault bool) (*configv1.Action, error) {
	var list []*configv1.Action
	for _, r := range refs {
		if (r.GetScope() == configv1.ActionRef_DEFAULT_ONLY && !isDefault) || (r.GetScope() == configv1.ActionRef_TABLE_ONLY && isDefault) {
			continue
		}
		if a := n.actions[r.GetId()]; a != nil {
			list = append(list, a)
		}
	}
	a, err := find(list, "action", name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	return a, nil
}

// call is an action with as many arguments as it has parameters.
func call(a *configv1.Action, args []*big.Int) *p4v1.Action {
	out := &p4v1.Action{ActionId: a.GetPreamble().GetId()}
	for i, p := range a.GetParams() {
		out.Params = append(out.Params, &p4v1.Action_Param{ParamId: p.GetId(), Value: bytesOf(args[i])})
	}
	return out
}

func actionOf(a *p4v1.Action) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: a}}
}

// ranked reports whether entries of a table have a priority.
func ranked(t *configv1.Table) bool {
	for _, f := range t.GetMatchFields() {
		switch f.GetMatchType() {
		case configv1.MatchField_TERNARY, configv1.MatchField_RANGE, configv1.MatchField_OPTIONAL:
			return true
		}
	}
	return false
}

// bytesOf is a number as P4Runtime writes it.
func bytesOf(v *big.Int) []byte {
	if v.Sign() == 0 {
		return []byte{0}
	}
	return v.Bytes()
}

// number reads a number of so many bits: decimal, hexadecimal, an address of
// IPv4 or IPv6, a MAC.
func number(text string, width int) (*big.Int, error) {
	v, err := parseNumber(text)
	switch {
	case err != nil:
		return nil, err
	case v.BitLen() > width && width > 0:
		return nil, fmt.Errorf("%s has more than %d bits", text, width)
	}
	return v, nil
}

func parseNumber(text string) (*big.Int, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return new(big.Int).SetBytes(addr.AsSlice()), nil
	}
	if mac, err := net.ParseMAC(text); err == nil && strings.Count(text, ":") == len(mac)-1 {
		return new(big.Int).SetBytes(mac), nil
	}
	if digits, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		if len(digits)%2 == 1 {
			digits = "0" + digits
		}
		b, err := hex.DecodeString(digits)
		if err != nil || len(b) == 0 {
			return nil, fmt.Errorf("%q is no hexadecimal number", text)
		}
		return new(big.Int).SetBytes(b), nil
	}
	v, ok := new(big.Int).SetString(text, 10)
	if !ok || v.Sign() < 0 || len(text) > 400 {
		return nil, fmt.Errorf("%.40q is no number, address or MAC", text)
	}
	return v, nil
}

var errNoMatch = errors.New("any")

// fieldMatch is what an entry wants of a field, whose value and what stands
// behind it (prefix length, mask, end of a range) are given; errNoMatch says that
// anything will do, which P4Runtime leaves out.
func fieldMatch(f *configv1.MatchField, first, second *big.Int) (*p4v1.FieldMatch, error) {
	width := int(f.GetBitwidth())
	m := &p4v1.FieldMatch{FieldId: f.GetId()}
	switch f.GetMatchType() {
	case configv1.MatchField_EXACT:
		m.FieldMatchType = &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: bytesOf(first)}}
	case configv1.MatchField_LPM:
		if !second.IsInt64() || second.Int64() > int64(width) {
			return nil, fmt.Errorf("a prefix of %v bits in a field of %d", second, width)
		}
		bits := uint(second.Int64())
		if bits == 0 {
			return nil, errNoMatch
		}
		low := uint(width) - bits
		v := new(big.Int).Rsh(first, low)
		m.FieldMatchType = &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: bytesOf(v.Lsh(v, low)), PrefixLen: int32(bits)}}
	case configv1.MatchField_TERNARY:
		if second.Sign() == 0 {
			return nil, errNoMatch
		}
		v := new(big.Int).And(first, second)
		m.FieldMatchType = &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: bytesOf(v), Mask: bytesOf(second)}}
	case configv1.MatchField_RANGE:
		all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(width)), big.NewInt(1))
		if first.Sign() == 0 && second.Cmp(all) == 0 {
			return nil, errNoMatch
		}
		m.FieldMatchType = &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: bytesOf(first), High: bytesOf(second)}}
	case configv1.MatchField_OPTIONAL:
		if second.Sign() == 0 {
			return nil, errNoMatch
		}
		m.FieldMatchType = &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: bytesOf(first)}}
	default:
		return nil, fmt.Errorf("a match of the kind %v cannot be written", f.GetMatchType())
	}
	return m, nil
}

// addMatch adds what an entry wants of a field to a key, where it wants anything,
// and names the field where that is wrong.
func addMatch(key []*p4v1.FieldMatch, f *configv1.MatchField, m *p4v1.FieldMatch, err error) ([]*p4v1.FieldMatch, error) {
	switch {
	case errors.Is(err, errNoMatch):
		return key, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.GetName(), err)
	}
	return append(key, m), nil
}

// secondOf is what stands behind a value that is given alone.
func secondOf(f *configv1.MatchField, first *big.Int) *big.Int {
	switch f.GetMatchType() {
	case configv1.MatchField_LPM:
		return big.NewInt(int64(f.GetBitwidth()))
	case configv1.MatchField_RANGE:
		return first
	}
	return new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(f.GetBitwidth())), big.NewInt(1))
}
