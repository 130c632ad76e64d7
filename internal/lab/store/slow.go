//go:build !js

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A server may not be an object store, or may be malicious: it may not respond,
// respond very slowly, or list objects endlessly. Everything that waits for its
// data or stores it has a limit.

const (
	// patience is how long a store may neither send nor receive anything.
	patience = 20 * time.Second
	// slowest is the minimum rate in bytes per second after that.
	slowest = 16 << 10
	// maxPage is the size of a page of a listing, maxPages the number of pages,
	// and maxListing the approximate memory for a complete listing.
	maxPage, maxPages, maxListing = 16 << 20, 1 << 12, 128 << 20
	// maxRest is the number of bytes of an unneeded response that are read.
	maxRest = 1 << 20
)

var errSlow = errors.New("no response, or a response that is too slow")

// A reply is the body of a response. Reading it times out; the time between two
// reads does not count.
type reply struct {
	io.ReadCloser
	ctx   context.Context
	timer *time.Timer
	end   context.CancelCauseFunc
	left  time.Duration // time left for waiting
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

// bounded passes the objects of a listing on. It fails if the listing is too
// large and skips names that are invalid in a store.
func bounded(each func(Object) error) func(Object) error {
	room := maxListing
	return func(o Object) error {
		if room -= len(o.Name) + 64; room < 0 {
			return fmt.Errorf("the listing is larger than %d MiB: not a store of p4lb", maxListing>>20)
		}
		if !utf8.ValidString(o.Name) || strings.ContainsFunc(o.Name, unicode.IsControl) {
			return nil
		}
		return each(o)
	}
}
