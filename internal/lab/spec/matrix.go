package spec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// This file reads and writes the connection matrices of htsim (.cm), as uet-htsim reads them: a
// header with counts, then a line for each connection and each trigger. Nodes are hosts in the
// order of the topology, and starts are whole microseconds. A oneshot trigger starts its
// connections when the connection that activates it has finished. A barrier starts them when
// count connections have finished. In htsim, each activation of a multishot starts the next
// connection. Here the k-th connection that activates it starts the k-th waiting connection, in
// whatever order they finish.

// A matrixParser is the state of parsing a connection matrix.
type matrixParser struct {
	hosts    int
	counts   map[string]int // counts in the header
	ids      map[int]int    // line numbers of connections, by id
	flows    []Flow
	lines    []int // line numbers of flows
	waiting  []int // trigger that each flow waits for; 0: none
	triggers map[int]*trigger
	declared int
}

// A trigger starts connections.
type trigger struct {
	line    int // line of its declaration; 0: none yet
	kind    string
	barrier int // number of connections that must activate it; 0: one
	used    int // first line that refers to it
	fires   []activation
	started int // connections started by a multishot
}

// An activation is a connection that activates a trigger.
type activation struct {
	place int32
	acked bool // it activates when its last byte is acknowledged, not when that arrives
}

// waitsFor returns the waits for some activations.
func waitsFor(list []activation) *Waits {
	w := new(Waits)
	for _, a := range list {
		if a.acked {
			w.AfterAck = append(w.AfterAck, a.place)
		} else {
			w.After = append(w.After, a.place)
		}
	}
	return w
}

// parseMatrix reads a connection matrix.
func parseMatrix(file string, text []byte, t *fabric.Topology) ([]Flow, error) {
	p := &matrixParser{hosts: t.NICs(), counts: map[string]int{}, ids: map[int]int{}, triggers: map[int]*trigger{}}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if err := p.line(strings.Fields(line), n); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	for _, c := range []struct {
		key  string
		have int
	}{{"Connections", len(p.flows)}, {"Triggers", p.declared}} {
		if stated, ok := p.counts[c.key]; ok && stated != c.have {
			return nil, fmt.Errorf("%s: %s %d in the header: the file has %d", file, c.key, stated, c.have)
		}
	}
	if len(p.flows) == 0 {
		return nil, fmt.Errorf("%s: there is no connection", file)
	}
	if line, err := p.resolve(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, line, err)
	}
	names := lists.Map(p.lines, func(n int) string { return fmt.Sprintf("line %d", n) })
	if at, err := waitCycle(p.flows, names); err != nil {
		return nil, fmt.Errorf("%s:%d: connections wait for each other: %w", file, p.lines[at], err)
	}
	return p.flows, nil
}

func (p *matrixParser) line(fields []string, n int) error {
	switch {
	case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		return nil
	case strings.Contains(fields[0], "->"):
		return p.connection(fields, n)
	case fields[0] == "trigger":
		return p.trigger(fields[1:], n)
	case fields[0] == "failure":
		return errors.New("failure: want the link among the faults of the experiment")
	case slices.Contains([]string{"Nodes", "Connections", "Triggers", "Failures"}, fields[0]):
		count, err := wholeNumber(fields, 1)
		if err != nil || len(fields) != 2 {
			return fmt.Errorf("%s: want a number", strings.Join(fields, " "))
		}
		if fields[0] == "Nodes" && count > p.hosts {
			return fmt.Errorf("nodes %d: the topology has %d hosts", count, p.hosts)
		}
		p.counts[fields[0]] = count
		return nil
	}
	return fmt.Errorf("%q: want Nodes, Connections, Triggers, SRC->DST or trigger", fields[0])
}

// wholeNumber returns a field that must be a number from 0 on.
func wholeNumber(fields []string, i int) (int, error) {
	if i >= len(fields) {
		return 0, errors.New("the number is missing")
	}
	v, err := strconv.Atoi(fields[i])
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q: want a number", fields[i])
	}
	if v > maxFlowBytes {
		return 0, fmt.Errorf("%d: want at most %d", v, int64(maxFlowBytes))
	}
	return v, nil
}

func (p *matrixParser) connection(fields []string, n int) error {
	src, dst, _ := strings.Cut(fields[0], "->")
	var f Flow
	for _, end := range []struct {
		text string
		to   *int
	}{{src, &f.Src}, {dst, &f.Dst}} {
		v, err := strconv.Atoi(end.text)
		if err != nil || v < 0 || v >= p.hosts {
			return fmt.Errorf("%s: node %q: want 0 to %d", fields[0], end.text, p.hosts-1)
		}
		*end.to = v
	}
	if f.Src == f.Dst {
		return fmt.Errorf("%s: a node sends to itself", fields[0])
	}
	values := map[string]int{}
	for i := 1; i < len(fields); i += 2 {
		key := fields[i]
		if !slices.Contains([]string{"id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio"}, key) {
			return fmt.Errorf("%q: want id, start, size, trigger, send_done_trigger, recv_done_trigger or prio", key)
		}
		if _, ok := values[key]; ok {
			return fmt.Errorf("%s: there are two", key)
		}
		v, err := wholeNumber(fields, i+1)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if v == 0 && key != "start" && key != "prio" {
			return fmt.Errorf("%s 0: want a number above 0", key)
		}
		values[key] = v
	}
	_, started := values["start"]
	switch {
	case values["size"] == 0:
		return errors.New("there is no size")
	case started == (values["trigger"] > 0):
		return errors.New("want either start or trigger")
	}
	if id := values["id"]; id > 0 {
		if before := p.ids[id]; before > 0 {
			return fmt.Errorf("id %d: line %d has it too", id, before)
		}
		p.ids[id] = n
	}
	f.Bytes, f.Start = int64(values["size"]), time.Duration(values["start"])*time.Microsecond
	place := int32(len(p.flows))
	if id := values["trigger"]; id > 0 {
		p.named(id, n)
	}
	if id := values["send_done_trigger"]; id > 0 {
		t := p.named(id, n)
		t.fires = append(t.fires, activation{place, true})
	}
	if id := values["recv_done_trigger"]; id > 0 {
		t := p.named(id, n)
		t.fires = append(t.fires, activation{place, false})
	}
	p.flows, p.lines, p.waiting = append(p.flows, f), append(p.lines, n), append(p.waiting, values["trigger"])
	return nil
}

// named returns a trigger that a line names.
func (p *matrixParser) named(id, line int) *trigger {
	t := p.triggers[id]
	if t == nil {
		t = &trigger{used: line}
		p.triggers[id] = t
	}
	return t
}

func (p *matrixParser) trigger(fields []string, n int) error {
	id, count, kind := 0, 0, ""
	for i := 0; i < len(fields); i++ {
		var err error
		switch key := fields[i]; key {
		case "id", "count":
			var v int
			if v, err = wholeNumber(fields, i+1); err == nil && v == 0 {
				err = errors.New("want a number above 0")
			}
			if key == "id" {
				id = v
			} else {
				count = v
			}
			i++
		case "oneshot", "multishot", "barrier":
			kind = key
		default:
			err = errors.New("want id, count, oneshot, multishot or barrier")
		}
		if err != nil {
			return fmt.Errorf("trigger: %s: %w", fields[min(i, len(fields)-1)], err)
		}
	}
	switch {
	case id == 0:
		return errors.New("trigger: there is no id")
	case kind == "":
		return fmt.Errorf("trigger %d: want oneshot, multishot or barrier", id)
	case (kind == "barrier") != (count > 0):
		return fmt.Errorf("trigger %d: %s with count %d: a barrier needs a count above 0, other triggers have none", id, kind, count)
	}
	t := p.named(id, n)
	if t.line > 0 {
		return fmt.Errorf("trigger %d: line %d has it too", id, t.line)
	}
	t.line, t.kind, t.barrier = n, kind, count
	p.declared++
	return nil
}

// resolve converts triggers to waits of connections. It returns the line of an error.
func (p *matrixParser) resolve() (line int, err error) {
	for i, id := range p.waiting {
		if id == 0 {
			continue
		}
		t := p.triggers[id]
		have, want := len(t.fires), max(1, t.barrier)
		if t.kind == "multishot" {
			if want, t.started = t.started+1, t.started+1; have >= want {
				p.flows[i].Waits = waitsFor(t.fires[want-1 : want])
				continue
			}
		}
		switch {
		case t.line == 0:
			return p.lines[i], fmt.Errorf("trigger %d: there is no such trigger", id)
		case have < want:
			return p.lines[i], fmt.Errorf("trigger %d is never fired: %d of %d connections activate it", id, have, want)
		case have > want:
			return t.line, fmt.Errorf("trigger %d: %d connections activate it: want %d, since connections begin once", id, have, want)
		}
		p.flows[i].Waits = waitsFor(t.fires)
	}
	for id, t := range p.triggers {
		if t.line == 0 {
			line, err = t.used, fmt.Errorf("trigger %d: there is no such trigger", id)
		}
	}
	return line, err
}

// Matrix writes flows as a connection matrix.
func Matrix(flows []Flow, t *fabric.Topology) ([]byte, error) {
	type done struct{ send, receive int }
	fires := make([]done, len(flows)) // trigger that each flow activates
	var list []*Waits
	numbers := map[string]int{}
	started := make([]int, len(flows))
	for i, f := range flows {
		w := f.Waits
		switch {
		case f.Compute:
			return nil, fmt.Errorf("flow %d: a connection matrix has no computations", i+1)
		case f.Service > 0:
			return nil, fmt.Errorf("flow %d: a connection matrix has no services", i+1)
		case f.Start%time.Microsecond != 0 && w == nil:
			return nil, fmt.Errorf("flow %d: start %v: a connection matrix has whole microseconds", i+1, f.Start)
		case w == nil:
			continue
		case w.Delay > 0 || f.Start > 0:
			return nil, fmt.Errorf("flow %d: a connection matrix has no start or delay with a trigger", i+1)
		}
		key := fmt.Sprint(w.After, w.AfterAck)
		n := numbers[key]
		if n == 0 {
			list = append(list, w)
			n = len(list)
			numbers[key] = n
			for _, place := range w.After {
				if fires[place].receive > 0 {
					return nil, fmt.Errorf("flow %d: flow %d starts other flows too: a connection has one trigger", i+1, place+1)
				}
				fires[place].receive = n
			}
			for _, place := range w.AfterAck {
				if fires[place].send > 0 {
					return nil, fmt.Errorf("flow %d: flow %d starts other flows too: a connection has one trigger", i+1, place+1)
				}
				fires[place].send = n
			}
		}
		started[i] = n
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "Nodes %d\nConnections %d\n", t.NICs(), len(flows))
	if len(list) > 0 {
		fmt.Fprintf(&b, "Triggers %d\n", len(list))
	}
	for i, f := range flows {
		fmt.Fprintf(&b, "%d->%d id %d", f.Src, f.Dst, i+1)
		if n := started[i]; n > 0 {
			fmt.Fprintf(&b, " trigger %d", n)
		} else {
			fmt.Fprintf(&b, " start %d", f.Start.Microseconds())
		}
		fmt.Fprintf(&b, " size %d", f.Bytes)
		if n := fires[i].send; n > 0 {
			fmt.Fprintf(&b, " send_done_trigger %d", n)
		}
		if n := fires[i].receive; n > 0 {
			fmt.Fprintf(&b, " recv_done_trigger %d", n)
		}
		b.WriteByte('\n')
	}
	for i, w := range list {
		if n := len(w.After) + len(w.AfterAck); n > 1 {
			fmt.Fprintf(&b, "trigger id %d count %d barrier\n", i+1, n)
		} else {
			fmt.Fprintf(&b, "trigger id %d oneshot\n", i+1)
		}
	}
	return b.Bytes(), nil
}
