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
)

// This file reads and writes GOAL schedules as text, the format of LogGOPSim and ATLAHS:
// for each rank operations send, recv and calc with labels, and the operations that an
// operation requires. Rank i is host i of the topology.
//
// A send and the receive of the same ranks, tag and order are a flow. calc is a
// computation in nanoseconds. "a requires b" lets a begin after b: after a
// computation has ended, or after the message of a send or a receive has arrived.
// An operation that requires a receive also waits for the requirements of the receive. "a
// irequires b" lets a begin when b begins. Operations of a rank overlap if they do
// not require each other, even on the same cpu.

// A goalParser is the state of parsing a schedule.
type goalParser struct {
	ranks  int
	rank   int // -1: outside of a rank
	opened int // line at which the rank began
	seen   map[int]int
	labels map[string]*goalOp // labels of the current rank
	ops    []*goalOp
}

// A goalOp is an operation of a rank.
type goalOp struct {
	kind     string
	rank     int
	peer     int
	tag      int
	bytes    int64 // duration of a calc in ns
	line     int
	requires []*goalOp
	begins   []*goalOp // operations that it irequires
	place    int32     // index of its flow; -1: it is a receive
	message  int32     // for a receive: its flow
	received bool      // for a send: it has a receive
	waits    []int32   // indices of flows, after they have been computed
	state    int
}

// parseGoal reads a schedule.
func parseGoal(file string, text []byte, t *fabric.Topology) ([]Flow, error) {
	p := &goalParser{rank: -1, seen: map[int]int{}}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "//")
		line, _, _ = strings.Cut(line, "#")
		if err := p.line(strings.Fields(line), n, t.NICs()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	switch {
	case p.rank >= 0:
		return nil, fmt.Errorf("%s:%d: rank %d has no end: want }", file, p.opened, p.rank)
	case p.ranks == 0:
		return nil, fmt.Errorf("%s: there is no num_ranks", file)
	}
	flows, at, err := p.flows()
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, at, err)
	}
	if len(flows) == 0 {
		return nil, fmt.Errorf("%s: there is no send", file)
	}
	return flows, nil
}

func (p *goalParser) line(f []string, n, hosts int) error {
	switch {
	case len(f) == 0:
		return nil
	case f[0] == "num_ranks":
		v, err := wholeNumber(f, 1)
		if err != nil || v == 0 || len(f) != 2 {
			return errors.New("num_ranks: want a number of ranks")
		}
		if v > hosts {
			return fmt.Errorf("num_ranks %d: the topology has %d hosts", v, hosts)
		}
		p.ranks = v
		return nil
	case f[0] == "rank":
		return p.begin(f, n)
	case f[0] == "}" && len(f) == 1 && p.rank >= 0:
		p.rank = -1
		return nil
	case p.rank < 0:
		return fmt.Errorf("%q outside of a rank: want num_ranks or rank", f[0])
	case len(f) == 3 && (f[1] == "requires" || f[1] == "irequires"):
		return p.require(f)
	}
	return p.operation(f, n)
}

func (p *goalParser) begin(f []string, n int) error {
	v, err := wholeNumber(f, 1)
	switch {
	case err != nil || len(f) != 3 || f[2] != "{":
		return errors.New("rank: want rank N {")
	case p.rank >= 0:
		return fmt.Errorf("rank %d within rank %d: want } first", v, p.rank)
	case v >= p.ranks:
		return fmt.Errorf("rank %d: want 0 to %d, by num_ranks", v, p.ranks-1)
	case p.seen[v] > 0:
		return fmt.Errorf("rank %d: line %d has it too", v, p.seen[v])
	}
	p.rank, p.opened, p.labels, p.seen[v] = v, n, map[string]*goalOp{}, n
	return nil
}

func (p *goalParser) require(f []string) error {
	a, b := p.labels[f[0]], p.labels[f[2]]
	for i, op := range []*goalOp{a, b} {
		if op == nil {
			return fmt.Errorf("%s %s %s: rank %d has no operation %s above", f[0], f[1], f[2], p.rank, f[2*i])
		}
	}
	if f[1] == "requires" {
		a.requires = append(a.requires, b)
	} else {
		a.begins = append(a.begins, b)
	}
	return nil
}

func (p *goalParser) operation(f []string, n int) error {
	op := &goalOp{rank: p.rank, line: n, place: -1}
	label, labelled := strings.CutSuffix(f[0], ":")
	if labelled {
		f = f[1:]
	}
	if len(f) < 2 {
		return errors.New("want send, recv, calc or requires")
	}
	op.kind = f[0]
	size := f[1]
	rest := f[2:]
	switch op.kind {
	case "send", "recv":
		way := map[string]string{"send": "to", "recv": "from"}[op.kind]
		if len(rest) < 2 || rest[0] != way {
			return fmt.Errorf("%s: want %s Nb %s RANK", op.kind, op.kind, way)
		}
		peer, err := wholeNumber(rest, 1)
		if err != nil || peer >= p.ranks || peer == p.rank {
			return fmt.Errorf("%s %s %s: want another rank, 0 to %d", op.kind, way, rest[1], p.ranks-1)
		}
		op.peer, rest = peer, rest[2:]
		size = strings.TrimSuffix(size, "b")
	case "calc":
	default:
		return fmt.Errorf("%q: want send, recv, calc or requires", f[0])
	}
	var err error
	if op.bytes, err = strconv.ParseInt(size, 10, 64); err != nil || op.bytes < 0 || op.bytes == 0 && op.kind != "calc" {
		return fmt.Errorf("%s %s: want a number above 0", op.kind, f[1])
	}
	if op.bytes > maxFlowBytes {
		return fmt.Errorf("%s %d: want at most %d", op.kind, op.bytes, int64(maxFlowBytes))
	}
	for i := 0; i < len(rest); i += 2 {
		v, err := wholeNumber(rest, i+1)
		if err != nil || !slices.Contains([]string{"tag", "cpu", "nic"}, rest[i]) {
			return fmt.Errorf("%s: want tag, cpu or nic with a number", strings.Join(rest[i:min(i+2, len(rest))], " "))
		}
		if rest[i] == "tag" {
			op.tag = v
		}
	}
	if labelled {
		if before := p.labels[label]; before != nil {
			return fmt.Errorf("label %s: line %d has it too", label, before.line)
		}
		p.labels[label] = op
	}
	p.ops = append(p.ops, op)
	return nil
}

// flows matches sends with receives, and makes a flow of each pair and of each
// computation. It returns the line of an error.
func (p *goalParser) flows() (list []Flow, line int, err error) {
	type match struct{ from, to, tag int }
	sends := map[match][]*goalOp{}
	for _, op := range p.ops {
		switch op.kind {
		case "send":
			op.place = int32(len(list))
			list = append(list, Flow{Src: op.rank, Dst: op.peer, Bytes: op.bytes})
			m := match{op.rank, op.peer, op.tag}
			sends[m] = append(sends[m], op)
		case "calc":
			op.place = int32(len(list))
			list = append(list, Flow{Src: op.rank, Dst: op.rank, Compute: true})
		}
	}
	for _, op := range p.ops {
		if op.kind != "recv" {
			continue
		}
		m := match{op.peer, op.rank, op.tag}
		if len(sends[m]) == 0 {
			return nil, op.line, fmt.Errorf("recv from %d tag %d: rank %d has no such send", op.peer, op.tag, op.peer)
		}
		send := sends[m][0]
		sends[m] = sends[m][1:]
		if send.bytes != op.bytes {
			return nil, op.line, fmt.Errorf("recv %db: its send, on line %d, has %d bytes", op.bytes, send.line, send.bytes)
		}
		send.received = true
		op.message = send.place
	}
	for _, op := range p.ops {
		if op.kind == "send" && !op.received {
			return nil, op.line, fmt.Errorf("send to %d tag %d: rank %d has no such recv", op.peer, op.tag, op.peer)
		}
	}
	for _, op := range p.ops {
		if err := op.settle(); err != nil {
			return nil, op.line, err
		}
	}
	for _, op := range p.ops {
		if op.place < 0 {
			continue
		}
		f := &list[op.place]
		delay := time.Duration(0)
		if f.Compute {
			delay = time.Duration(op.bytes)
		}
		if len(op.waits) > 0 {
			f.Waits = &Waits{After: op.waits, Delay: delay}
		} else {
			f.Start = delay
		}
	}
	// A cycle may include receives of several ranks, connected by messages.
	names := make([]string, len(list))
	lines := make([]int, len(list))
	for _, op := range p.ops {
		if op.place >= 0 {
			names[op.place], lines[op.place] = fmt.Sprintf("line %d", op.line), op.line
		}
	}
	if at, err := waitCycle(list, names); err != nil {
		return nil, lines[at], fmt.Errorf("operations require each other: %w", err)
	}
	return list, 0, nil
}

// settle computes the flows that an operation waits for.
func (op *goalOp) settle() error {
	const open, closed = 1, 2
	switch op.state {
	case open:
		return fmt.Errorf("operations require each other: %s on line %d is one of them", op.kind, op.line)
	case closed:
		return nil
	}
	op.state = open
	add := func(places ...int32) {
		for _, at := range places {
			if !slices.Contains(op.waits, at) {
				op.waits = append(op.waits, at)
			}
		}
	}
	for _, before := range op.requires {
		if err := before.settle(); err != nil {
			return err
		}
		if before.kind == "recv" {
			add(before.message)
			add(before.waits...)
		} else {
			add(before.place)
		}
	}
	for _, before := range op.begins {
		if err := before.settle(); err != nil {
			return err
		}
		add(before.waits...)
	}
	op.state = closed
	return nil
}

// pause returns the delay of a flow after its predecessors, or after the start.
func pause(f *Flow) time.Duration {
	if f.Waits != nil {
		return f.Waits.Delay
	}
	return f.Start
}

// Goal writes flows as a GOAL schedule. A flow may only wait for flows from or to its source. A
// schedule does not distinguish acknowledgments from arrivals.
func Goal(flows []Flow, t *fabric.Topology) ([]byte, error) {
	texts := make([]bytes.Buffer, t.NICs())
	for i, f := range flows {
		if f.Service > 0 {
			return nil, fmt.Errorf("flow %d: a schedule has no services", i+1)
		}
		if delay := pause(&f); f.Compute || delay > 0 {
			fmt.Fprintf(&texts[f.Src], "c%d: calc %d\n", i, delay.Nanoseconds())
		}
		if f.Compute {
			continue
		}
		fmt.Fprintf(&texts[f.Src], "s%d: send %db to %d tag %d\n", i, f.Bytes, f.Dst, i)
		fmt.Fprintf(&texts[f.Dst], "r%d: recv %db from %d tag %d\n", i, f.Bytes, f.Src, i)
	}
	for i, f := range flows {
		b := &texts[f.Src]
		name, w := fmt.Sprintf("s%d", i), f.Waits
		if w == nil {
			w = new(Waits)
		} else if f.Start > 0 {
			return nil, fmt.Errorf("flow %d: a schedule cannot combine a start time with requirements", i+1)
		}
		if f.Compute || pause(&f) > 0 {
			name = fmt.Sprintf("c%d", i)
			if !f.Compute {
				fmt.Fprintf(b, "s%d requires c%d\n", i, i)
			}
		}
		for _, place := range slices.Concat(w.After, w.AfterAck) {
			before := &flows[place]
			switch {
			case before.Compute && before.Src == f.Src:
				fmt.Fprintf(b, "%s requires c%d\n", name, place)
			case before.Compute || before.Dst != f.Src && before.Src != f.Src:
				return nil, fmt.Errorf("flow %d: it waits for flow %d between other hosts: a schedule has requirements within a rank", i+1, place+1)
			case before.Dst == f.Src:
				fmt.Fprintf(b, "%s requires r%d\n", name, place)
			default:
				fmt.Fprintf(b, "%s requires s%d\n", name, place)
			}
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "num_ranks %d\n", t.NICs())
	for i := range texts {
		fmt.Fprintf(&b, "\nrank %d {\n%s}\n", i, texts[i].Bytes())
	}
	return b.Bytes(), nil
}
