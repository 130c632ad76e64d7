package fitting

import "math"

const (
	isotonicRounds = 5000
	isotonicDigits = 1e-12
)

// isotonic changes the values of a grid, nl rows of nt values, so that they rise
// from row to row and fall within each row. The change is minimal in weighted
// squares. The algorithm is Dykstra's alternating projection, in which each
// projection pools adjacent violators in one dimension. A last pass makes the order
// exact, because tables round the values.
func isotonic(value, weight []float64, nl, nt int) {
	n := len(value)
	dl, dt := make([]float64, n), make([]float64, n)
	before := make([]float64, n)
	for range isotonicRounds {
		copy(before, value)
		correct(value, dl, func() {
			for t := range nt {
				pool(value, weight, t, nt, nl, 1)
			}
		})
		correct(value, dt, func() {
			for l := range nl {
				pool(value, weight, l*nt, 1, nt, -1)
			}
		})
		var moved float64
		for i, v := range value {
			moved = max(moved, math.Abs(v-before[i]))
		}
		if moved < isotonicDigits {
			break
		}
	}
	for l := 1; l < nl; l++ {
		for t := range nt {
			value[l*nt+t] = max(value[l*nt+t], value[(l-1)*nt+t])
		}
	}
}

// correct projects with Dykstra's correction: it first adds back the change of the
// previous projection.
func correct(value, taken []float64, project func()) {
	for i := range value {
		value[i] += taken[i]
		taken[i] = value[i]
	}
	project()
	for i := range value {
		taken[i] -= value[i]
	}
}

// pool makes n values monotone by pooling neighbours that are out of order. The
// values start at index start, step apart. They must rise, or fall if sign is -1.
func pool(value, weight []float64, start, step, n int, sign float64) {
	type block struct {
		mean, weight float64
		size         int
	}
	var blocks []block
	for k := range n {
		i := start + k*step
		b := block{sign * value[i], weight[i], 1}
		for len(blocks) > 0 && blocks[len(blocks)-1].mean > b.mean {
			last := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			w := last.weight + b.weight
			b = block{(last.mean*last.weight + b.mean*b.weight) / w, w, last.size + b.size}
		}
		blocks = append(blocks, b)
	}
	i := start
	for _, b := range blocks {
		for range b.size {
			value[i] = sign * b.mean
			i += step
		}
	}
}
