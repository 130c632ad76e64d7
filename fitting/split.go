package fitting

import (
	"container/heap"
	"math/rand/v2"
	"slices"
)

// A split assigns each row, in the order of Rows.All, to a fold of the training set or to the
// test set.
type split struct {
	of   []uint8
	test int // rows in the test set
}

const inTest = 255 // maxFolds is smaller than this

// divide holds back a share of the rows for the test and distributes the others to
// folds. It processes rows in the order of their values instead of their order in the
// files. So neither the order of rows, nor their distribution over files, nor a change
// of units moves a row. Each run of k adjacent training rows is distributed to k
// folds, so that each fold covers every region.
func (s *Rows) divide(share float64, folds int, seed uint64) split {
	d := split{of: make([]uint8, s.n), test: int(share * float64(s.n))}
	if d.test == 0 && folds < 2 {
		return d
	}
	rng := rand.New(rand.NewPCG(seed, 0x66697474696e67))
	hand := make([]int, max(folds, 1))
	for i := range hand {
		hand[i] = i
	}
	left, need, dealt := s.n, d.test, len(hand)
	for row := range s.sorted() {
		// Knuth's selection sampling: exactly need rows, each with equal probability.
		if rng.IntN(left) < need {
			d.of[row] = inTest
			need--
		} else {
			if dealt == len(hand) {
				rng.Shuffle(len(hand), func(i, j int) { hand[i], hand[j] = hand[j], hand[i] })
				dealt = 0
			}
			d.of[row] = uint8(hand[dealt])
			dealt++
		}
		left--
	}
	return d
}

// compareRows orders by occupancy, interval and traffic. Rows for a fit contain no NaN.
func compareRows(a, b Row) int {
	switch {
	case a.L != b.L:
		return sign(a.L < b.L)
	case a.T != b.T:
		return sign(a.T < b.T)
	case a.Y != b.Y:
		return sign(a.Y < b.Y)
	}
	return 0
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}

// sorted sorts each block in place and yields the indexes of all rows in the order
// of their values, by a merge without additional memory.
func (s *Rows) sorted() func(yield func(int) bool) {
	var m merge
	start := 0
	for _, block := range s.blocks {
		slices.SortFunc(block, compareRows)
		if len(block) > 0 {
			m = append(m, mergeHead{block, start})
		}
		start += len(block)
	}
	heap.Init(&m)
	return func(yield func(int) bool) {
		for len(m) > 0 {
			head := &m[0]
			if !yield(head.index) {
				return
			}
			head.rest, head.index = head.rest[1:], head.index+1
			if len(head.rest) == 0 {
				heap.Pop(&m)
				continue
			}
			heap.Fix(&m, 0)
		}
	}
}

// A merge is a heap of blocks, ordered by their first rows.
type merge []mergeHead

type mergeHead struct {
	rest  []Row
	index int // index in rest[0]
}

func (m merge) Len() int           { return len(m) }
func (m merge) Less(i, j int) bool { return compareRows(m[i].rest[0], m[j].rest[0]) < 0 }
func (m merge) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }

// Push and Pop make a merge one of package heap.
func (m *merge) Push(x any) { *m = append(*m, x.(mergeHead)) }

// Pop removes the last element.
func (m *merge) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}
