package fabric

import (
	"cmp"
	"math"
	"slices"
)

// # Layout of the drawing
//
// Each tier is a row, the highest on top. The hosts of a leaf form a block of
// dots below it. A row is as wide as its nodes need, the drawing as wide as the
// widest row, and the nodes of a row are spread evenly. The lowest row has the
// order of the topology. A node of a higher row is placed by the mean position
// of its neighbors below, which keeps pods together.

// Dimensions of the drawing in pixels.
const (
	margin    = 24
	nodeH     = 28
	letterW   = 8   // width of a letter in a name
	nodeGap   = 20  // between nodes of a row
	rowPitch  = 120 // minimum; a wide drawing uses more, so that lines stay apart
	dotPitch  = 14
	dotRadius = 4.5
	dotsInRow = 8
	hostsGap  = 56 // between a leaf and its hosts
)

// A box is the position of a switch.
type box struct{ x, y, w float64 } // x and y of its center

// A layout is the position of everything.
type layout struct {
	boxes  []box   // positions of the switches
	hosts  [][]int // by switch: indices in Topology.Hosts
	width  float64
	height float64
}

// layOut places the switches below a header of the given height.
func (t *Topology) layOut(head float64) *layout {
	l := &layout{boxes: make([]box, len(t.Switches)), hosts: make([][]int, len(t.Switches))}
	for i, h := range t.Hosts {
		s, _ := t.switchIndex(h.Switch)
		l.hosts[s] = append(l.hosts[s], i)
	}
	rows := t.rows()
	for _, row := range rows {
		// The width needed by each node of the row.
		widest := 0.0
		for _, s := range row {
			l.boxes[s].w = max(48, float64(len(t.Switches[s].Name)*letterW+20))
			columns, _ := dots(len(l.hosts[s]))
			widest = max(widest, l.boxes[s].w, float64(columns+1)*dotPitch)
		}
		l.width = max(l.width, (widest+nodeGap)*float64(len(row)))
	}
	down := math.Round(min(max(rowPitch, l.width/9), 2.5*rowPitch))
	below := 0.0 // bottom of the lowest block of hosts
	for i, row := range slices.Backward(rows) {
		if i < len(rows)-1 {
			l.order(t, row)
		}
		step := l.width / float64(len(row))
		for k, s := range row {
			l.boxes[s].x = margin + step*(float64(k)+0.5)
			l.boxes[s].y = head + nodeH/2 + float64(i)*down
			if n := len(l.hosts[s]); n > 0 {
				_, rows := dots(n)
				below = max(below, l.boxes[s].y+hostsGap+float64(rows)*dotPitch+letterW*3)
			}
		}
	}
	l.height = max(below, head+nodeH+float64(len(rows)-1)*down) + margin
	l.width += 2 * margin
	return l
}

// rows returns the switches by tier, the highest first.
func (t *Topology) rows() [][]int {
	var rows [3][]int
	for i, s := range t.Switches {
		rows[3-s.Role.Tier()] = append(rows[3-s.Role.Tier()], i)
	}
	return slices.DeleteFunc(rows[:], func(row []int) bool { return row == nil })
}

// dots returns the shape of a block of n hosts.
func dots(n int) (columns, rows int) {
	columns = min(n, dotsInRow)
	if n > 8*dotsInRow {
		columns = 2 * dotsInRow
	}
	return columns, (n + max(columns, 1) - 1) / max(columns, 1)
}

// order sorts a row by the positions of its neighbors in lower rows, which have
// been placed.
func (l *layout) order(t *Topology, row []int) {
	mean := map[int]float64{}
	for _, s := range row {
		sum, n := 0.0, 0
		for _, p := range t.ports[s] {
			if k, ok := t.switchIndex(p.Peer); ok && l.boxes[k].y > 0 {
				sum += l.boxes[k].x
				n++
			}
		}
		mean[s] = sum / float64(max(n, 1))
	}
	slices.SortStableFunc(row, func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
}
