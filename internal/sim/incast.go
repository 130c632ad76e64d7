package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// An Incast is a client that repeatedly sends requests to several servers at the same time. The
// answers converge on its port.
type Incast struct {
	Client  string   // empty: each request has another client of Servers
	Servers []string // hosts of which each request draws some; nil: all hosts

	Responders int           // number of servers per request
	Bytes      int64         // total bytes of the answers to a request; the first answers get the remainder
	Start      time.Duration // time of the first request
	Period     time.Duration // interval between requests
	Requests   int           // number of requests; zero: one

	Flow FlowSpec // parameters of each answer: Transport, Tuning, Done and so on

	// Done, if not nil, is called with the time of a request when all its answers have arrived.
	Done func(asked time.Duration)
}

// StartIncast plans the requests. Their random choices depend only on the seed.
func (n *Network) StartIncast(i Incast) error {
	if i.Servers == nil {
		for _, h := range n.hosts {
			i.Servers = append(i.Servers, h.Name)
		}
	}
	if err := i.validate(n); err != nil {
		return fmt.Errorf("incast: %w", err)
	}
	r := &requester{Incast: i, net: n, random: n.stream("incast/" + i.Client), left: max(i.Requests, 1)}
	n.At(i.Start, r.ask)
	return nil
}

func (i *Incast) validate(n *Network) error {
	others := 0
	for _, name := range i.Servers {
		if n.Host(name) == nil {
			return fmt.Errorf("there is no host %q", name)
		}
		if name != i.Client {
			others++
		}
	}
	switch {
	case i.Client != "" && n.Host(i.Client) == nil:
		return fmt.Errorf("there is no host %q", i.Client)
	case i.Client == "":
		others--
	}
	switch {
	case i.Responders < 1 || i.Responders > others:
		return fmt.Errorf("%d responders: want 1 to %d", i.Responders, others)
	case i.Bytes < int64(i.Responders):
		return fmt.Errorf("%d bytes from %d responders", i.Bytes, i.Responders)
	case i.Start < 0 || i.Requests > 1 && i.Period <= 0:
		return errors.New("the times of the requests make no sense")
	}
	_, err := n.tune(&i.Flow, 1)
	return err
}

// A requester is the state of a running incast.
type requester struct {
	Incast
	net    *Network
	random *rand.Rand
	left   int
}

// ask sends a request and plans the next one.
func (r *requester) ask() {
	servers := append([]string(nil), r.Servers...)
	r.random.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
	client := r.Client
	if client == "" {
		client, servers = servers[0], servers[1:]
	}
	r.answer(client, servers)
	if r.left--; r.left > 0 {
		r.net.At(r.net.now+r.Period, r.ask)
	}
}

// answer starts the flows that answer a request, from the first servers other than the client.
func (r *requester) answer(client string, servers []string) {
	asked, open, left := r.net.now, r.Responders, r.Bytes
	done := r.Flow.Done
	for i := 0; left > 0; servers = servers[1:] {
		if servers[0] == client {
			continue
		}
		f := r.Flow
		f.From, f.To = servers[0], client
		f.Bytes = (left + int64(r.Responders-i) - 1) / int64(r.Responders-i)
		f.Done = func(f *Flow) {
			if done != nil {
				done(f)
			}
			if open--; open == 0 && r.Done != nil {
				r.Done(asked)
			}
		}
		left -= f.Bytes
		i++
		// The hosts exist and differ. validate has checked the other fields.
		if _, err := r.net.StartFlow(f); err != nil {
			panic(err)
		}
	}
}
