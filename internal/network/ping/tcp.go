package ping

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// patience is the time limit for a connection.
	patience = 500 * time.Millisecond
	// dials is the number of parallel connections. If all of the first ones fail, no further ones
	// are tried.
	dials = 16
)

// TCP opens a connection between each pair of hosts, for programs that forward only
// TCP. It reports which connections succeeded.
func TCP(ctx context.Context, in Spaces, pairs []Pair) []bool {
	passed := make([]bool, len(pairs))
	for begin := 0; begin < len(pairs); begin += dials {
		var wg sync.WaitGroup
		for i := begin; i < min(begin+dials, len(pairs)); i++ {
			wg.Go(func() { passed[i] = connect(ctx, in, pairs[i]) == nil })
		}
		wg.Wait()
		if ctx.Err() != nil || begin == 0 && !slices.Contains(passed, true) {
			break
		}
	}
	return passed
}

// connect opens a connection to a listener of the receiver. A refused connection is
// not enough: a reset has no TCP options, and programs with additional headers may
// not parse it.
func connect(ctx context.Context, in Spaces, p Pair) error {
	var l net.Listener
	err := in.In(p.To.Name, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(p.To.IP.Addr().String(), "0"))
		return err
	})
	if err != nil {
		return err
	}
	defer l.Close()
	return in.In(p.From.Name, func() error {
		d := net.Dialer{Timeout: patience}
		c, err := d.DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return err
		}
		return c.Close()
	})
}
