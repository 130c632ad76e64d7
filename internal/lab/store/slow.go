package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// What answers may be no store, or one that means ill: it says nothing, trickles,
// lists without end. All that waits for it, or keeps what it says, has a limit.

const (
	// patience is how long a store may say nothing, or take nothing.
	patience = 20 * time.Second
	// slowest is how many bytes a second must come or go after that.
	slowest = 16 << 10
	// maxPage is the size of one page of a listing, maxPages their number, and
	// maxListing about what all of a listing takes.
	maxPage, maxPages, maxListing = 16 << 20, 1 << 12, 128 << 20
	// maxRest is how much of an answer is read that nobody wants.
	maxRest = 1 << 20
)

var errSlow = errors.New("it says nothing, or too slowly")

// A reply is the body of an answer. What waits for it is given up in time; the time
// that whoever reads it takes himself does not count.
type reply struct {
	io.ReadCloser
	ctx   context.Context
	timer *time.Timer
	end   context.CancelCauseFunc
	left  time.Duration // to wait for more
}

func (r *reply) Read(p []byte) (int, error) {
	began := time.Now()
	r.timer.Reset(max(0, r.left))
	n, err := r.ReadCloser.Read(p)
	r.timer.Stop()
	r.left += time.Duration(n)*time.Second/slowest - time.Since(began)
	if err != nil && err != io.EOF && context.Cause(r.ctx) == errSlow {
		err = errSlow
	}
	return n, err
}

// Close ends the request.
func (r *reply) Close() error {
	r.timer.Stop()
	defer r.end(nil)
	return r.ReadCloser.Close()
}

// bounded hands on the objects of a listing: not more than there is room for, and
// none whose name is not of a store.
func bounded(each func(Object) error) func(Object) error {
	room := maxListing
	return func(o Object) error {
		if room -= len(o.Name) + 64; room < 0 {
			return fmt.Errorf("the listing takes more than %d MiB: nothing that belongs there", maxListing>>20)
		}
		for i := range len(o.Name) {
			if o.Name[i] <= ' ' || o.Name[i] > '~' {
				return nil
			}
		}
		return each(o)
	}
}
