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

// names resolves names with a P4Info: full names, and unique suffixes like
// ipv4_lpm for MyIngress.ipv4_lpm.
type names struct {
	info    *configv1.P4Info
	actions map[uint32]*configv1.Action
}

// A described object has a name.
type described interface{ GetPreamble() *configv1.Preamble }

// find returns the object with a name. The error suggests the nearest name.
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
	return none, fmt.Errorf("%s %s is ambiguous: want the full name %s or %s", kind, name, found[0].GetPreamble().GetName(), found[1].GetPreamble().GetName())
}

// nearest returns the end of an error message about an unknown name.
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

// action returns an action of a table or an action profile.
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

// call returns an action with its arguments.
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

// bytesOf returns a number in P4Runtime's encoding.
func bytesOf(v *big.Int) []byte {
	if v.Sign() == 0 {
		return []byte{0}
	}
	return v.Bytes()
}

// number parses a number of at most width bits: decimal, hexadecimal, an IPv4
// or IPv6 address, or a MAC.
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
			return nil, fmt.Errorf("%q is not a hexadecimal number", text)
		}
		return new(big.Int).SetBytes(b), nil
	}
	v, ok := new(big.Int).SetString(text, 10)
	if !ok || v.Sign() < 0 || len(text) > 400 {
		return nil, fmt.Errorf("%.40q: want a number, an IP address or a MAC", text)
	}
	return v, nil
}

var errNoMatch = errors.New("any")

// fieldMatch returns the match of a field from its value and the second part:
// prefix length, mask, or end of a range. It returns errNoMatch if any value
// matches, which P4Runtime expresses by omitting the field.
func fieldMatch(f *configv1.MatchField, first, second *big.Int) (*p4v1.FieldMatch, error) {
	width := int(f.GetBitwidth())
	m := &p4v1.FieldMatch{FieldId: f.GetId()}
	switch f.GetMatchType() {
	case configv1.MatchField_EXACT:
		m.FieldMatchType = &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: bytesOf(first)}}
	case configv1.MatchField_LPM:
		if !second.IsInt64() || second.Int64() > int64(width) {
			return nil, fmt.Errorf("the prefix length is %v, want at most the %d bits of the field", second, width)
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
		return nil, fmt.Errorf("match kind %v is not supported", f.GetMatchType())
	}
	return m, nil
}

// addMatch appends the result of fieldMatch to a key, or adds the name of the
// field to its error.
func addMatch(key []*p4v1.FieldMatch, f *configv1.MatchField, m *p4v1.FieldMatch, err error) ([]*p4v1.FieldMatch, error) {
	switch {
	case errors.Is(err, errNoMatch):
		return key, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.GetName(), err)
	}
	return append(key, m), nil
}

// secondOf returns the second part of a value given alone.
func secondOf(f *configv1.MatchField, first *big.Int) *big.Int {
	switch f.GetMatchType() {
	case configv1.MatchField_LPM:
		return big.NewInt(int64(f.GetBitwidth()))
	case configv1.MatchField_RANGE:
		return first
	}
	return new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(f.GetBitwidth())), big.NewInt(1))
}
