package web

import (
	"math"
	"slices"
	"strconv"

	"github.com/p4lb/p4lb/internal/ui/live"
)

// A Fabric describes the drawing: switches, hosts and links.
type Fabric struct {
	Name  string `json:"name"`
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links"`
}

// A Node is a host (tier 0) or a switch.
type Node struct {
	Name string `json:"name"`
	Tier int    `json:"tier"`
	Role string `json:"role,omitempty"`
}

// A Link connects two ports. Hosts have port 0.
type Link struct {
	A     string  `json:"a"`
	APort int     `json:"ap"`
	B     string  `json:"b"`
	BPort int     `json:"bp"`
	Rate  float64 `json:"rate"` // bit/s
}

// A coder encodes frames as lists of numbers. The description of the numbers,
// the series, is a separate message, sent once and again after changes.
type coder struct {
	version int
	series  []byte // as sent
	scheme  string
	known   []known
}

// known contains the series of a switch. They are kept while the switch does not
// answer.
type known struct {
	name, role string
	series     []series
}

// A series describes one number of a frame.
type series struct {
	Register, Index string
	Port            int
	Peer            string
	Group, Path     int
	Unit, Meaning   string
}

func seriesOf(v *live.Value) series {
	return series{v.Register, v.Index, v.Port, v.Peer, v.Group, v.Path, v.Unit, v.Meaning}
}

// encode encodes a frame. same reports whether the series have not changed
// since the frame before.
func (c *coder) encode(f *live.Frame) (frame []byte, same bool) {
	if same = c.same(f); !same {
		c.learn(f)
	}
	b := append(make([]byte, 0, 1<<12), `{"v":`...)
	b = strconv.AppendInt(b, int64(c.version), 10)
	b = append(b, `,"t":`...)
	b = strconv.AppendInt(b, f.Time.Microseconds(), 10)
	if !f.Wall.IsZero() {
		b = append(b, `,"w":`...)
		b = strconv.AppendInt(b, f.Wall.UnixMilli(), 10)
	}
	b = append(b, `,"x":[`...)
	for i := range f.Switches {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSwitch(b, &f.Switches[i])
	}
	return framed("frame", append(b, "]}"...)), same
}

// appendSwitch appends the values of a switch, or its error.
func appendSwitch(b []byte, sw *live.Switch) []byte {
	if sw.Err != "" {
		return strconv.AppendQuote(b, printable(sw.Err))
	}
	b = append(b, '[')
	for j := range sw.Values {
		if j > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, &sw.Values[j])
	}
	return append(b, ']')
}

// appendValue appends a number, and its text if the page cannot derive it from
// number and unit.
func appendValue(b []byte, v *live.Value) []byte {
	if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) {
		return append(b, "null"...)
	}
	reasons := v.Register == live.PortDrops && v.Number > 0
	words := v.Unit == "trend" || v.Unit == "slot" // these numbers are shown as words
	if !reasons && !words && (v.Unit != "" || v.Text == "" || isNumber(v.Text)) {
		return strconv.AppendFloat(b, v.Number, 'g', 7, 64)
	}
	b = append(b, '[')
	b = strconv.AppendFloat(b, v.Number, 'g', 7, 64)
	b = append(b, ',')
	return append(strconv.AppendQuote(b, printable(v.Text)), ']')
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// printable replaces characters that Go and JSON quote differently, and
// non-ASCII ones, by question marks.
func printable(s string) string {
	clean := []rune(s)
	for i, r := range clean {
		if r < ' ' || r == 0x7f || r > 0x7e {
			clean[i] = '?'
		}
	}
	return string(clean)
}

// same reports whether the series of a frame are the ones sent last.
func (c *coder) same(f *live.Frame) bool {
	if c.version == 0 || len(f.Switches) != len(c.known) || f.Scheme != c.scheme {
		return false
	}
	for i := range f.Switches {
		sw, k := &f.Switches[i], &c.known[i]
		if sw.Name != k.name {
			return false
		}
		if sw.Err != "" {
			continue
		}
		if len(sw.Values) != len(k.series) {
			return false
		}
		for j := range sw.Values {
			if seriesOf(&sw.Values[j]) != k.series[j] {
				return false
			}
		}
	}
	return true
}

// learn stores the series of a frame and encodes them.
func (c *coder) learn(f *live.Frame) {
	c.version++
	c.scheme = f.Scheme
	before := c.known
	c.known = make([]known, len(f.Switches))
	type row [8]any
	type sent struct {
		Name   string `json:"name"`
		Role   string `json:"role"`
		Series []row  `json:"series"`
	}
	list := make([]sent, len(f.Switches))
	for i := range f.Switches {
		sw := &f.Switches[i]
		k := known{name: sw.Name, role: sw.Role}
		if at := slices.IndexFunc(before, func(k known) bool { return k.name == sw.Name }); at >= 0 && sw.Err != "" {
			k = before[at]
		}
		for j := range sw.Values {
			k.series = append(k.series, seriesOf(&sw.Values[j]))
		}
		c.known[i] = k
		list[i] = sent{Name: k.name, Role: k.role, Series: make([]row, len(k.series))}
		for j, s := range k.series {
			list[i].Series[j] = row{s.Register, s.Index, s.Port, s.Peer, s.Group, s.Path, s.Unit, s.Meaning}
		}
	}
	c.series = message("series", map[string]any{
		"v": c.version, "scheme": f.Scheme, "fabric": f.Fabric, "virtual": f.Virtual, "switches": list,
	})
}
