package live

// span is the number of frames in a history.
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

// A history holds the last values of a cell, the latest last.
type history struct {
	points []float64
	frame  int // the frame of the latest value
}

// A memory holds the histories of all cells.
type memory struct {
	cells map[cell]*history
	frame int
}

// add adds a frame. It drops histories without a value for span frames.
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

// sparkline draws the last points in at most width columns, scaled between the
// least and the greatest. Constant values give a line at the bottom.
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
