package live

// span is how many frames a history reaches back.
const span = 40

// A cell identifies a series: a cell of a register, or the register as a whole.
type cell struct {
	sw, register, index string
	whole               bool
}

func cellOf(sw string, v Value) cell {
	return cell{sw: sw, register: v.Register, index: v.Index}
}

func wholeOf(sw string, v Value) cell {
	return cell{sw: sw, register: v.Register, whole: true}
}

// A history is the last values of a cell, the latest last.
type history struct {
	points []float64
	frame  int // in which it was last written
}

// A memory has the histories of a fabric.
type memory struct {
	cells map[cell]*history
	frame int
}

// add adds a frame and drops series that have been missing for the length of a
// history.
func (m *memory) add(f *Frame) {
	if m.cells == nil {
		m.cells = map[cell]*history{}
	}
	m.frame++
	for i := range f.Switches {
		sw := &f.Switches[i]
		for _, v := range sw.Values {
			m.put(cellOf(sw.Name, v), v.Number)
		}
		for _, s := range summaries(sw) {
			if s.err == "" {
				m.put(wholeOf(sw.Name, s.value), s.mean)
			}
		}
	}
	for c, h := range m.cells {
		if m.frame-h.frame > span {
			delete(m.cells, c)
		}
	}
}

func (m *memory) put(c cell, x float64) {
	h := m.cells[c]
	if h == nil {
		h = &history{points: make([]float64, 0, span)}
		m.cells[c] = h
	}
	if len(h.points) == span {
		h.points = h.points[:copy(h.points, h.points[1:])]
	}
	h.points = append(h.points, x)
	h.frame = m.frame
}

func (m *memory) of(c cell) []float64 {
	if h := m.cells[c]; h != nil {
		return h.points
	}
	return nil
}

var sparks = []rune("▁▂▃▄▅▆▇█")

// sparkline draws the last points in at most width columns, from the least to
// the greatest of them. What never changed is a low line.
func sparkline(points []float64, width int) string {
	if len(points) > width {
		points = points[len(points)-width:]
	}
	if len(points) == 0 {
		return ""
	}
	low, high := points[0], points[0]
	for _, x := range points {
		low, high = min(low, x), max(high, x)
	}
	line := make([]rune, len(points))
	for i, x := range points {
		level := 0
		if high > low {
			level = int((x - low) / (high - low) * float64(len(sparks)-1))
		}
		line[i] = sparks[level]
	}
	return string(line)
}
