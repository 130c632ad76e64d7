package fabric

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// SVG draws the network: a row for each tier, the hosts of a leaf as dots, a
// line for each link in the color of its rate and delay. Failed links are
// dashed. Each element has a tooltip.
func (t *Topology) SVG() []byte {
	p := &picture{t: t}
	p.kinds = t.linkKinds()
	about := plain.Wrap(printable(t.About), 96)
	p.layout = t.layOut(margin + 28 + float64(len(about))*16 + float64(legendRows(p.kinds))*18)
	width := math.Max(p.width, 640)
	shift := (width - p.width) / 2
	fmt.Fprintf(&p.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n", width, p.height, width, p.height)
	p.b.WriteString(style)
	p.text(margin, margin+8, "title", t.Name)
	for i, line := range about {
		p.text(margin, margin+28+float64(i)*16, "about", line)
	}
	p.legend(margin + 26 + float64(len(about))*16)
	fmt.Fprintf(&p.b, `<g transform="translate(%.1f 0)">`+"\n", shift)
	p.links()
	for i, s := range p.t.Switches {
		b := p.boxes[i]
		fmt.Fprintf(&p.b, `<g><title>%s</title><rect class="node t%d" x="%.1f" y="%.1f" width="%.1f" height="%d" rx="6"/>`,
			escape(fmt.Sprintf("%s: %s, id %d, P4Runtime %s, Thrift %s, %d ports", s.Name, s.Role, s.ID, s.GRPC, s.Thrift, len(p.t.ports[i]))),
			s.Role.Tier(), b.x-b.w/2, b.y-nodeH/2, b.w, nodeH)
		p.text(b.x, b.y+4.5, "", s.Name)
		p.b.WriteString("</g>\n")
		p.block(b, p.hosts[i])
	}
	p.b.WriteString("</g>\n</svg>\n")
	return p.b.Bytes()
}

// style supports light and dark mode. The colors of links are distinguishable
// with color vision deficiency.
const style = `<style>
svg { --ink: #1f2933; --soft: #64748b; --paper: #ffffff; --low: #dbeafe; --mid: #ede9fe; --top: #dcfce7; --dot: #f59e0b; --down: #dc2626; background: var(--paper); font: 13px system-ui, sans-serif }
@media (prefers-color-scheme: dark) { svg { --ink: #e5e7eb; --soft: #94a3b8; --paper: #111827; --low: #1e3a5f; --mid: #3b2f63; --top: #1b4332; --dot: #fbbf24; --down: #f87171 } }
text { fill: var(--ink); text-anchor: middle }
.title { font-size: 17px; font-weight: 600; text-anchor: start }
.about, .key { fill: var(--soft); font-size: 12px; text-anchor: start }
.range { fill: var(--soft); font-size: 11px }
.node { stroke: var(--ink); stroke-width: 1.2 }
.t1 { fill: var(--low) } .t2 { fill: var(--mid) } .t3 { fill: var(--top) }
.host { fill: var(--dot) } .cut { fill: var(--down) }
.link { fill: none; stroke-width: 1.6; opacity: .75 }
.link:hover { stroke-width: 4; opacity: 1 }
.k0 { stroke: #2563eb } .k1 { stroke: #ea8c0c } .k2 { stroke: #0d9488 } .k3 { stroke: #a21caf } .k4 { stroke: #84a310 } .k5 { stroke: #64748b }
.link.down { stroke: var(--down); stroke-dasharray: 6 5 }
</style>
`

// colours is the number of kinds of links with different colors.
const colours = 6

// A picture is an SVG under construction.
type picture struct {
	*layout
	t     *Topology
	kinds []linkKind
	b     bytes.Buffer
}

// A linkKind is the common property of links with the same color.
type linkKind struct {
	rate  Rate
	delay time.Duration
}

func (k linkKind) String() string { return fmt.Sprintf("%v, %s", k.rate, FormatDelay(k.delay)) }

func (l Link) kind() linkKind { return linkKind{l.Rate, l.Delay} }

// linkKinds returns the kinds of links, the fastest first.
func (t *Topology) linkKinds() []linkKind {
	kinds := lists.Map(t.Links, Link.kind)
	slices.SortFunc(kinds, linkKind.compare)
	return slices.Compact(kinds)
}

// compare orders fast links first.
func (k linkKind) compare(o linkKind) int {
	return cmp.Or(cmp.Compare(o.rate, k.rate), cmp.Compare(k.delay, o.delay))
}

// class returns the style of a link.
func (p *picture) class(l Link) string {
	i, _ := slices.BinarySearchFunc(p.kinds, l.kind(), linkKind.compare)
	class := fmt.Sprint("link k", min(i, colours-1))
	if l.Down {
		class += " down"
	}
	return class
}

// Number of keys in a row of the legend.
const keysInRow = 4

func legendRows(kinds []linkKind) int {
	return (min(len(kinds), colours) + 1 + keysInRow - 1) / keysInRow
}

// legend draws the meaning of the colors.
func (p *picture) legend(y float64) {
	var keys []string
	for i, k := range p.kinds[:min(len(p.kinds), colours)] {
		text := k.String()
		if i == colours-1 && len(p.kinds) > colours {
			text = "others"
		}
		keys = append(keys, fmt.Sprintf("link k%d\x00%s", i, text))
	}
	if p.t.failed() {
		keys = append(keys, "link down\x00down")
	}
	for i, key := range keys {
		class, text, _ := strings.Cut(key, "\x00")
		x, y := margin+float64(i%keysInRow)*150, y+float64(i/keysInRow)*18
		fmt.Fprintf(&p.b, `<path class="%s" d="M%.1f %.1fh24"/>`+"\n", class, x, y-4)
		p.text(x+30, y, "key", text)
	}
}

// links draws the lines between switches, the fast ones first and failed ones
// last, so that unusual links are on top, and one line from each leaf to its
// hosts.
func (p *picture) links() {
	type strand struct {
		Link
		ends [2]int // switches
		nth  int    // number among the links between them
	}
	var strands []strand
	between := map[[2]int]int{}
	for _, l := range p.t.Links {
		a, okA := p.t.switchIndex(l.A.Node)
		b, okB := p.t.switchIndex(l.B.Node)
		if okA && okB {
			ends := [2]int{min(a, b), max(a, b)}
			strands = append(strands, strand{l, ends, between[ends]})
			between[ends]++
		}
	}
	slices.SortStableFunc(strands, func(a, b strand) int { return strings.Compare(p.class(a.Link), p.class(b.Link)) })
	for _, late := range []bool{false, true} {
		for _, s := range strands {
			if s.Down == late {
				p.link(s.Link, p.boxes[s.ends[0]], p.boxes[s.ends[1]], float64(s.nth)-float64(between[s.ends]-1)/2)
			}
		}
	}
	for s, hosts := range p.hosts {
		if len(hosts) > 0 {
			l := p.t.Links[p.t.linkOf(&p.t.Hosts[hosts[0]])]
			l.Down = false // shown at the host
			fmt.Fprintf(&p.b, `<path class="%s" d="M%.1f %.1fv%d"/>`+"\n", p.class(l), p.boxes[s].x, p.boxes[s].y+nodeH/2, hostsGap-nodeH/2)
		}
	}
}

// link draws a link between two boxes, step positions beside the straight line.
func (p *picture) link(l Link, a, b box, step float64) {
	if a.y < b.y {
		a, b = b, a
	}
	from, to := a.y-nodeH/2, b.y+nodeH/2
	x, y := (a.x+b.x)/2+step*26, (from+to)/2
	if a.y == b.y { // in one row: above the boxes in between
		to = from
		x, y = (a.x+b.x)/2, from-30-math.Abs(step)*14-step*6
	}
	fmt.Fprintf(&p.b, `<path class="%s" d="M%.1f %.1fQ%.1f %.1f %.1f %.1f"><title>%s</title></path>`+"\n",
		p.class(l), a.x, from, x, y, b.x, to, escape(describe(l)))
}

// describe returns a description of a link.
func describe(l Link) string {
	text := fmt.Sprintf("%v: %v", l, l.kind())
	if l.Queue > 0 {
		text += fmt.Sprintf(", queue of %d packets", l.Queue)
	}
	if l.Down {
		text += ", down"
	}
	return text
}

// block draws the hosts below a leaf.
func (p *picture) block(b box, hosts []int) {
	if len(hosts) == 0 {
		return
	}
	columns, rows := dots(len(hosts))
	top := b.y + hostsGap + dotPitch/2
	for k, i := range hosts {
		h := p.t.Hosts[i]
		l := p.t.Links[p.t.linkOf(&p.t.Hosts[i])]
		class := "host"
		if l.Down {
			class = "host cut"
		}
		x := b.x + (float64(k%columns)-float64(columns-1)/2)*dotPitch
		fmt.Fprintf(&p.b, `<circle class="%s" cx="%.1f" cy="%.1f" r="%.1f"><title>%s</title></circle>`+"\n", class, x, top+float64(k/columns)*dotPitch, dotRadius,
			escape(fmt.Sprintf("%s: %v, %v; %s", h.Name, h.IP, h.MAC, describe(l))))
	}
	label := p.t.Hosts[hosts[0]].Name
	if len(hosts) > 1 {
		label += " … " + p.t.Hosts[hosts[len(hosts)-1]].Name
	}
	p.text(b.x, top+float64(rows)*dotPitch+6, "range", label)
}

func (p *picture) text(x, y float64, class, text string) {
	attr := ""
	if class != "" {
		attr = fmt.Sprintf(` class="%s"`, class)
	}
	fmt.Fprintf(&p.b, `<text%s x="%.1f" y="%.1f">%s</text>`, attr, x, y, escape(text))
	if class != "" {
		p.b.WriteByte('\n')
	}
}

func escape(text string) string { return html.EscapeString(printable(text)) }

// printable removes characters that XML does not allow.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, text)
}
