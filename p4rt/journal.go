package p4rt

// A journal remembers how to take back what a batch has done. A nil journal
// remembers nothing: a batch that continues on error needs none.
type journal struct {
	undo []func()
}

func (j *journal) add(undo func()) {
	if j != nil {
		j.undo = append(j.undo, undo)
	}
}

// rollBack takes everything back, last things first: each step then finds the
// state that its update has left.
func (j *journal) rollBack() {
	for i := len(j.undo) - 1; i >= 0; i-- {
		j.undo[i]()
	}
	j.undo = nil
}
