package manifest

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A Value is what a manifest says of a field of a key or an argument: a number,
// or a fact of the topology.
type Value struct {
	Fact Fact   // "": Number
	Node string // the host or switch that the fact is about; "": what there is an entry for

	Number uint64
	Bits   int // that Number needs, or of the prefix if Prefix is set

	Prefix bool   // Number counts as far as the first Bits of its field
	Any    bool   // it stands for all numbers
	Masked bool   // Number counts where Mask has a bit
	Mask   uint64 // of a ternary field
	Ranged bool   // it stands for the numbers up to High
	High   uint64
}

// ParseValue reads a value: 10, 0xff, 10.0.0.1, 10.0.0.0/8, 08:00:00:00:01:11,
// * for anything, 1..9 for a range, 0x800&&&0xff00 with a mask, $port or
// $port(s1) for a fact.
func ParseValue(text string) (Value, error) {
	text = strings.TrimSpace(text)
	if name, ok := strings.CutPrefix(text, "$"); ok {
		return parseFact(name)
	}
	if text == "*" {
		return Value{Any: true}, nil
	}
	if low, high, ok := strings.Cut(text, ".."); ok {
		from, err1 := parseNumber(low)
		to, err2 := parseNumber(high)
		if err1 != nil || err2 != nil || to < from {
			return Value{}, fmt.Errorf("%q: want a range such as 1..9", text)
		}
		return Value{Number: from, Ranged: true, High: to, Bits: bits.Len64(to)}, nil
	}
	if number, mask, ok := strings.Cut(text, "&&&"); ok {
		n, err1 := parseNumber(number)
		m, err2 := parseNumber(mask)
		if err1 != nil || err2 != nil {
			return Value{}, fmt.Errorf("%q: want a number and a mask such as 0x800&&&0xff00", text)
		}
		return Value{Number: n, Masked: true, Mask: m, Bits: bits.Len64(n | m)}, nil
	}
	if number, length, ok := strings.Cut(text, "/"); ok {
		n, err1 := parseNumber(number)
		l, err2 := strconv.Atoi(length)
		if err1 != nil || err2 != nil || l < 0 || l > 64 || strings.Contains(number, ".") && l > 32 {
			return Value{}, fmt.Errorf("%q: want a prefix such as 10.0.0.0/8", text)
		}
		return Value{Number: n, Prefix: true, Bits: l}, nil
	}
	n, err := parseNumber(text)
	return Value{Number: n, Bits: bits.Len64(n)}, err
}

func parseFact(text string) (Value, error) {
	name, rest, about := strings.Cut(text, "(")
	v := Value{Fact: Fact(name)}
	if about {
		node, ok := strings.CutSuffix(rest, ")")
		if v.Node = strings.TrimSpace(node); !ok || v.Node == "" {
			return Value{}, fmt.Errorf("%q: want a node in brackets, as in $port(s1)", "$"+text)
		}
	}
	if names := wordNames(v.Fact); !slices.Contains(names, name) {
		return Value{}, fmt.Errorf("there is no fact $%s%s", name, wanted(name, names))
	}
	return v, nil
}

// parseNumber reads a number, an IPv4 address or a MAC.
func parseNumber(text string) (uint64, error) {
	text = strings.TrimSpace(text)
	if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
		b := a.As4()
		return uint64(binary.BigEndian.Uint32(b[:])), nil
	}
	if m, err := net.ParseMAC(text); err == nil && len(m) == 6 {
		return binary.BigEndian.Uint64(append([]byte{0, 0}, m...)), nil
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: want a number of at most 64 bits, an address, or a fact such as $port", text)
	}
	return n, nil
}
