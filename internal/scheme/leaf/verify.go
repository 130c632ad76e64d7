package leaf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/scheme"
)

// A prober runs the generated program of a polynomial on the embedded switch
// with one port. It simulates the queue and the departure times of that port,
// so a packet can meet a queue of any length at any time after the previous
// one. The result passes through the measurement at egress, the report and the
// computation at ingress, as in a real switch.
type prober struct {
	sw     *dataplane.Switch
	packet []byte
	now    time.Duration
	out    []dataplane.Outcome
}

// probedPort is the port to which the packets are routed.
const probedPort = 7

func newProber(poly fitting.Poly) (*prober, error) {
	name := fmt.Sprintf("qall-poly%d", poly.Degree)
	if poly.Degree == 1 {
		name = "qall-linear"
	}
	s, err := new(scheme.Library).Find(name)
	if err != nil {
		return nil, err
	}
	// With T_b = 0 every packet is reported.
	g, err := scheme.Make(s, codegen.Params{Coeffs: &poly, Set: map[string]string{"tb": "0us"}})
	if err != nil {
		return nil, err
	}
	engine, err := New(g, 4)
	if err != nil {
		return nil, err
	}
	p := &prober{sw: engine.Switch(), packet: Packets(1)[0], now: time.Hour}
	copy(p.packet[30:], []byte{172, 16, 0, 1})
	copy(p.packet[24:], []byte{0, 0})
	binary.BigEndian.PutUint16(p.packet[24:], HeaderChecksum(p.packet[14:34]))
	return p, errors.Join(
		p.add("LbIngress.ipv4_route", dataplane.Match{Value: []byte{172, 16, 0, 0}, PrefixLen: 12}, "LbIngress.set_port", []byte{0, probedPort}),
		// rl = 2^16: the occupancy is the queue length.
		p.add("LbEgress.port_cfg", dataplane.Match{Value: []byte{0, probedPort}}, "LbEgress.set_port_cfg", []byte{1, 0, 0}))
}

func (p *prober) add(table string, key dataplane.Match, action string, param []byte) error {
	_, err := p.sw.Tables().Add(table, dataplane.Entry{Match: []dataplane.Match{key},
		Target: dataplane.Target{Action: dataplane.ActionCall{Name: action, Params: [][]byte{param}}}})
	return err
}

// index returns the index that the switch computes for a port with queue length
// l, wait µs after the previous packet.
func (p *prober) index(l, wait int64) (int64, error) {
	p.now += time.Duration(wait) * time.Microsecond
	p.out = p.sw.Ingress(p.sw.Receive(HostPort, p.packet, p.now), p.now, p.out[:0])
	learnt := false
	for len(p.out) > 0 {
		o := p.out[0]
		p.out = p.out[1:]
		switch o.Kind {
		case dataplane.ToQueue:
			p.sw.Enqueued(o.Packet, int(l), p.now)
			p.out = p.sw.Egress(o.Packet, int(l), p.now, p.out)
		case dataplane.ToIngress:
			p.out = p.sw.Ingress(o.Packet, p.now, p.out)
			learnt = true
		default:
			p.sw.Free(o.Packet)
		}
	}
	if !learnt {
		return 0, errors.New("the generated program sends no report")
	}
	c, err := p.sw.Registers().Read("q_C", probedPort)
	if err != nil {
		return 0, err
	}
	return c.Int64(), nil
}

// Verify compares the integers of package fitting with the embedded switch at n
// points, for all occupancies and for intervals up to twice the range. They
// must be bit-identical.
func Verify(ctx context.Context, poly fitting.Poly, n int, seed uint64) error {
	p, err := newProber(poly)
	if err != nil {
		return err
	}
	if _, err := p.index(0, 1); err != nil { // for the first packet of a port, the interval is infinite
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 0x7665726966))
	grid, cmax := poly.Grid(), poly.Max()
	for i := range n {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		l, wait := rng.Int64N(256), 1+rng.Int64N(2*poly.T.Max)
		got, err := p.index(l, wait)
		if err != nil {
			return err
		}
		want := min(max(grid[poly.LRange().Byte(l)<<8+poly.T.Byte(wait)], 0), cmax)
		if got != want {
			return fmt.Errorf("at L = %d and T = %d us the generated program computes C = %d, want %d", l, wait, got, want)
		}
	}
	return nil
}
