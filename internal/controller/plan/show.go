package plan

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Rows returns the plan as a table, one row per object. The first row contains the headings.
func (p *Plan) Rows() [][]string {
	rows := [][]string{{"SWITCH", "OBJECT", "VALUE"}}
	for _, s := range p.Switches {
		add := func(object, value string) { rows = append(rows, []string{s.Name, object, value}) }
		add("program", fmt.Sprintf("%s for the role %s", s.Pipeline.Manifest.Scheme, s.Role))
		for _, e := range s.Entries {
			add(e.Key(), e.call())
		}
		for _, c := range s.Sessions {
			add(fmt.Sprintf("clone session %d", c.ID), fmt.Sprintf("port %d", c.Port))
		}
		for _, g := range s.Groups {
			add(fmt.Sprintf("multicast group %d", g.ID), "ports "+strings.Trim(fmt.Sprint(g.Ports), "[]"))
		}
		for _, r := range s.Registers {
			object := fmt.Sprintf("register %s[%d]", r.Register, r.From)
			if r.To > r.From+1 {
				object = fmt.Sprintf("register %s[%d..%d]", r.Register, r.From, r.To-1)
			}
			add(object, fmt.Sprint(r.Value))
		}
		for _, q := range s.Queues {
			add(fmt.Sprintf("queue of port %d", q.Port), q.String())
		}
		for _, f := range s.Filters {
			add("filter "+f.Name, f.String())
		}
	}
	return rows
}

// Key formats the key of an entry, as in LbIngress.member gid=2 slot=0.
func (e Entry) Key() string {
	if e.Match == nil {
		return e.Table + " default"
	}
	parts := []string{e.Table}
	for _, m := range e.Match {
		value := formatWide(m.Upper, m.Value, m.Width)
		switch {
		case m.Any, m.Bits == 0 && m.Width > 0 && m.Width < 32:
			value = "*"
		case m.Mask != nil:
			value += fmt.Sprintf("&&&%#x", *m.Mask)
		case m.High != nil:
			value += ".." + FormatNumber(*m.High, m.Width)
		case m.Bits != m.Width || strings.HasSuffix(m.Field, ".dst") || strings.HasSuffix(m.Field, ".src"):
			value = fmt.Sprintf("%s/%d", value, m.Bits)
		}
		parts = append(parts, manifest.Short(m.Field)+"="+value)
	}
	return strings.Join(parts, " ")
}

// call formats the action of an entry, as in set_group(gid=2, n=4).
func (e Entry) call() string {
	if len(e.OneOf) == 0 {
		return Call{e.Action, e.Args}.String()
	}
	list := lists.Map(e.OneOf, Call.String)
	return "one of " + strings.Join(list, ", ")
}

// String formats the call, as in set_group(gid=2, n=4).
func (c Call) String() string {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		width := a.Width
		if width == 32 {
			width = 64 // format it as a number instead of an address
		}
		args[i] = a.Name + "=" + formatWide(a.Upper, a.Value, width)
	}
	return c.Action + "(" + strings.Join(args, ", ") + ")"
}

// String formats the rate and the depth, as in 33333 packets/s, 64 packets.
func (q Queue) String() string {
	text := fmt.Sprintf("%d packets/s, %d packets", q.Rate, q.Depth)
	if signal := q.Text(); signal != "" {
		text += ", " + signal
	}
	return text
}

// formatWide is FormatNumber for numbers of up to 128 bits.
func formatWide(upper, v uint64, width int) string {
	if upper == 0 {
		return FormatNumber(v, width)
	}
	return netip.AddrFrom16([16]byte(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, upper), v))).String()
}

// FormatNumber formats a number of a width in bits: 48 bits as a MAC address, 32 bits
// as an IPv4 address if it looks like a host's.
func FormatNumber(v uint64, width int) string {
	switch {
	case width == 48:
		return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	case width == 32:
		return fmt.Sprintf("%d.%d.%d.%d", byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return strconv.FormatUint(v, 10)
}
