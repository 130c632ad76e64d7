package stf

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// Run runs a test on a new switch with a program. The error lists the failures,
// one per line.
func Run(cfg *bmv2.Config, text string) error {
	s, err := Parse("stf", text)
	if err != nil {
		return err
	}
	sw, err := dataplane.New(cfg, s.Options(cfg))
	if err != nil {
		return err
	}
	return s.Run(sw)
}

// Options returns the options of a switch for the test: ports of Tofino with
// expected packets do not recirculate.
func (s *Script) Options(cfg *bmv2.Config) dataplane.Options {
	loops := slices.DeleteFunc(dataplane.Loopback(cfg.Chip()), func(port uint32) bool { return s.outlets[port] })
	return dataplane.Options{Loopback: loops}
}

// step is the time between two lines.
const step = time.Millisecond

// A runner is a test in progress.
type runner struct {
	script   *Script
	watcher  Watcher // nil: none
	engine   *dataplane.Engine
	sw       *dataplane.Switch
	now      time.Duration
	sent     map[uint32][][]byte
	expected map[uint32][]stmt
	handles  map[string]program.Handle

	left    map[uint32][]byte // the last packet that left each port
	surplus map[uint32]int    // number of packets that left each port, minus expected ones
	before  map[uint32]int    // surplus at the first packet line of a group
	grouped bool              // the last line about packets is a packet line
}

// Run runs the test on a switch in its current state. It compares the packets at
// the end.
func (s *Script) Run(sw *dataplane.Switch) error {
	return s.RunWatched(sw, nil)
}

// A Watcher follows a test.
type Watcher interface {
	// Line is called before each statement.
	Line(number int, op string)
	// Left is called with each packet that leaves the switch.
	Left(port uint32, data []byte)
}

// RunWatched is Run with a watcher, which may be nil.
func (s *Script) RunWatched(sw *dataplane.Switch, w Watcher) error {
	r := &runner{
		script: s, watcher: w, engine: dataplane.NewEngine(sw), sw: sw, now: time.Second,
		sent: map[uint32][][]byte{}, expected: map[uint32][]stmt{}, handles: map[string]program.Handle{},
		left: map[uint32][]byte{}, surplus: map[uint32]int{}, before: map[uint32]int{},
	}
	var errs []error
	for _, st := range s.stmts {
		r.now += step
		r.collect(r.engine.Run(r.now))
		if w != nil {
			w.Line(st.line, st.op)
		}
		if err := r.do(st); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %s: %w", s.name, st.line, st.op, err))
		}
	}
	r.drain()
	return errors.Join(append(errs, r.comparePackets()...)...)
}

func (r *runner) do(st stmt) error {
	switch st.op {
	case "packet":
		data, err := hex.DecodeString(st.data)
		if err != nil {
			return err
		}
		if !r.grouped {
			r.grouped, r.before = true, maps.Clone(r.surplus)
		}
		r.collect(r.engine.Process(st.port, data, r.now))
		return nil
	case "expect":
		r.grouped = false
		r.surplus[st.port]--
		r.expected[st.port] = append(r.expected[st.port], st)
		return nil
	case "no_packet":
		return r.noPacket()
	case "wait":
		r.drain()
		return nil
	}
	return r.command(st)
}

// noPacket fails if a packet has left any port since the first of the packet
// lines before, other than the packets of expect lines.
func (r *runner) noPacket() error {
	r.drain()
	r.grouped = false
	for _, port := range slices.Sorted(maps.Keys(r.left)) {
		// An expected packet of an earlier group may leave late.
		if r.surplus[port] > max(r.before[port], 0) {
			return fmt.Errorf("port %d: a packet left: %X", port, r.left[port])
		}
	}
	return nil
}

func (r *runner) collect(out []dataplane.Out) {
	for _, o := range out {
		if r.watcher != nil {
			r.watcher.Left(o.Port, o.Data)
		}
		r.surplus[o.Port]++
		r.left[o.Port] = slices.Clone(o.Data)
		if r.script.ports[o.Port] {
			r.sent[o.Port] = append(r.sent[o.Port], slices.Clone(o.Data))
		}
	}
}

// maxDrain bounds the events that drain waits for.
const maxDrain = 10000

// drain advances the time until the queues are empty.
func (r *runner) drain() {
	for range maxDrain {
		at, ok := r.engine.Next()
		if !ok {
			return
		}
		r.now = max(r.now, at)
		r.collect(r.engine.Run(r.now))
	}
}

// comparePackets compares the packets that have left with the expected ones,
// port by port.
func (r *runner) comparePackets() []error {
	var errs []error
	for _, port := range slices.Sorted(maps.Keys(r.script.ports)) {
		want, got := r.expected[port], r.sent[port]
		for i := range max(len(want), len(got)) {
			var err error
			switch {
			case i >= len(got):
				data := want[i].data
				if want[i].any {
					data = "any"
				}
				err = fmt.Errorf("%s:%d: port %d: no packet, expected %s", r.script.name, want[i].line, port, data)
			case i >= len(want):
				err = fmt.Errorf("%s: port %d: unexpected packet %X", r.script.name, port, got[i])
			default:
				err = r.comparePacket(want[i], got[i])
			}
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// comparePacket compares a packet with an expectation, digit by digit.
func (r *runner) comparePacket(want stmt, data []byte) error {
	if want.any {
		return nil
	}
	pattern, exact := strings.CutSuffix(want.data, "$")
	got := fmt.Sprintf("%X", data)
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s:%d: port %d: %s\n  expected %s\n  got      %s\n  %*s",
			r.script.name, want.line, want.port, fmt.Sprintf(format, args...), want.data, got, 10+difference(pattern, got), "^")
	}
	switch i := difference(pattern, got); {
	case i < len(pattern) && i < len(got):
		return fail("byte %d differs", i/2)
	case len(got) < len(pattern):
		return fail("%d bytes, expected %d", len(data), len(pattern)/2)
	case exact && len(got) > len(pattern):
		return fail("%d bytes, expected exactly %d", len(data), len(pattern)/2)
	}
	return nil
}

// difference returns the index of the first digit that differs.
func difference(pattern, got string) int {
	for i := range min(len(pattern), len(got)) {
		if pattern[i] != '*' && pattern[i] != got[i] {
			return i
		}
	}
	return min(len(pattern), len(got))
}
