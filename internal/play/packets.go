package play

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/stf"
	"github.com/p4lb/p4lb/internal/p4"
)

// A packetsRequest is a request to send packets through a program. The test has the
// format of p4lb test: entries, then packets.
type packetsRequest struct {
	Source
	Test string `json:"test"`
}

// A walk is the step-by-step record of the packets.
type walk struct {
	Steps     []packetStep `json:"steps"`
	Cut       bool         `json:"cut"` // Cut is set if later steps were omitted.
	Registers []register   `json:"registers"`
	// Test is the test with the output packets as expectations.
	Test string `json:"test"`
	// Failures are differences from the expectations of the request.
	Failures []string  `json:"failures"`
	Messages []Message `json:"messages"` // messages of the compiler; if there are errors, there are no steps
	Sent     int       `json:"sent"`
	Received int       `json:"received"`
}

// A packetStep is an event of a packet, with the changes that it caused.
type packetStep struct {
	Line   int    `json:"line"`   // line of the test
	Packet uint64 `json:"packet"` // number of the packet; a clone has its own
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"`
	Detail string `json:"detail,omitempty"`
	Source int    `json:"source,omitempty"` // line of the program
	Data   string `json:"data,omitempty"`   // bytes of a packet that enters or leaves
	// Changes are the changes to packet fields and registers in this step.
	Changes []change `json:"changes,omitempty"`
}

// A change is a value before and after a step. If a header appears, the value
// before is empty; if it disappears, the value after is.
type change struct {
	What   string `json:"what"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// A register is a register of the program.
type register struct {
	Name  string `json:"name"`
	Cells int    `json:"cells"`
	Width int    `json:"width"`
}

// Limits of a walk.
const (
	maxSteps   = 4000
	maxPackets = 256
	maxChanges = 200 // changes of one step
	// maxWatched bounds the register words that are compared at each step.
	maxWatched = 1 << 18
)

func packets(ctx context.Context, r packetsRequest, _ Progress) (*walk, error) {
	if err := r.checkSize(); err != nil {
		return nil, err
	}
	checked, err := check(ctx, r.Source, nil)
	if err != nil {
		return nil, err
	}
	w := &walk{Steps: []packetStep{}, Registers: []register{}, Failures: []string{}, Messages: []Message{}}
	if i := slices.IndexFunc(checked.Messages, func(m Message) bool { return !m.Warning }); i >= 0 {
		w.Messages = checked.Messages
		return w, nil
	}
	files, err := r.all().folder()
	if err != nil {
		return nil, err
	}
	compiled, err := p4.Compile(files, r.Name, p4.Options{})
	if err != nil {
		return nil, err
	}
	if compiled.Arch == "" {
		return nil, errors.New("the program has no main: want a switch, as in V1Switch(...) main")
	}
	script, err := stf.Parse("test", r.Test)
	if err != nil {
		return nil, testError(err)
	}
	if n := strings.Count("\n"+strings.ToLower(r.Test), "\npacket "); n > maxPackets {
		return nil, fmt.Errorf("the test has %d packets: want at most %d", n, maxPackets)
	}
	return w, w.follow(compiled.Config, script, r.Test)
}

// testError returns an error of a test with its line in a separate field.
func testError(err error) error {
	e := &Error{Message: strings.TrimPrefix(err.Error(), "test:")}
	if n, _ := fmt.Sscanf(err.Error(), "test:%d:", &e.Line); n == 1 {
		_, e.Message, _ = strings.Cut(e.Message, ": ")
	}
	return e
}

// follow runs the test.
func (w *walk) follow(config *bmv2.Config, script *stf.Script, text string) error {
	f := &follower{walk: w, config: config, fields: map[uint64]map[string]string{}, last: map[uint64]int{}, outputs: map[int][]output{}}
	options := script.Options(config)
	options.Trace = f.event
	sw, err := dataplane.New(config, options)
	if err != nil {
		return fmt.Errorf("loading the program: %w", err)
	}
	f.sw = sw
	f.watch()
	err = script.RunWatched(sw, f)
	f.settleRegisters()
	for line := range strings.Lines(errorText(err)) {
		w.Failures = append(w.Failures, strings.TrimSuffix(line, "\n"))
	}
	w.Test = f.test(text)
	w.Received = f.left
	for _, a := range config.RegisterArrays {
		w.Registers = append(w.Registers, register{a.Name, a.Size, a.Bitwidth})
	}
	return nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A follower records the events of a test.
type follower struct {
	walk   *walk
	config *bmv2.Config
	sw     *dataplane.Switch

	line   int
	fields map[uint64]map[string]string // fields of each packet at its last event
	last   map[uint64]int               // index of the last step of each packet
	newest int                          // index of the last step

	registers []watched
	outputs   map[int][]output // by the line of the input packet
	packet    int              // line of the last input packet
	left      int
}

type output struct {
	port uint32
	data []byte
}

// A watched register is compared at each step.
type watched struct {
	name  string
	cells []uint64
}

func (f *follower) watch() {
	total := 0
	for _, a := range f.config.RegisterArrays {
		cells, _ := f.sw.Registers().Now(a.Name)
		if total += len(cells); total > maxWatched {
			return
		}
		f.registers = append(f.registers, watched{a.Name, slices.Clone(cells)})
	}
}

// Line is called at the start of each statement of the test.
func (f *follower) Line(number int, op string) {
	f.line = number
	if op == "packet" {
		f.packet = number
		f.walk.Sent++
	}
	if op == "register_write" || op == "register_reset" {
		return
	}
	f.settleRegisters()
}

// Left records an output packet.
func (f *follower) Left(port uint32, data []byte) {
	f.left++
	f.outputs[f.packet] = append(f.outputs[f.packet], output{port, bytes.Clone(data)})
	f.add(packetStep{Line: f.packet, Kind: "output", Name: fmt.Sprintf("port %d", port), Data: hex.EncodeToString(data)})
}

// add adds a step and returns its index, or -1 if the limit is reached.
func (f *follower) add(s packetStep) int {
	if len(f.walk.Steps) >= maxSteps {
		f.walk.Cut = true
		return -1
	}
	f.walk.Steps = append(f.walk.Steps, s)
	f.newest = len(f.walk.Steps) - 1
	return f.newest
}

// event records an event. It is called before the program executes the event's
// step. So changes since the packet's previous event belong to that previous event.
func (f *follower) event(e dataplane.Event) {
	f.settleRegisters()
	f.settleFields(e)
	s := packetStep{Line: f.packet, Packet: e.Packet, Kind: e.Kind.String(), Name: e.Name}
	switch e.Kind {
	case dataplane.EventEnqueue:
		s.Name, s.Detail = fmt.Sprintf("port %d", e.Value), fmt.Sprintf("%d packets before it", e.Depth)
	case dataplane.EventTransmit:
		s.Name = fmt.Sprintf("port %d", e.Value)
	case dataplane.EventClone:
		s.Name = fmt.Sprintf("session %d", e.Value)
	case dataplane.EventTableHit:
		s.Detail = fmt.Sprintf("entry %d", e.Value)
	case dataplane.EventParserError:
		s.Detail = fmt.Sprintf("error %d", e.Value)
	}
	if e.Source != nil {
		s.Source = e.Source.Line
		if e.Kind == dataplane.EventAction && e.Source.SourceFragment != "" {
			s.Detail = e.Source.SourceFragment
		}
	}
	if i := f.add(s); i >= 0 {
		f.last[e.Packet] = i
	}
}

// settleFields assigns changes of fields to the packet's previous event.
func (f *follower) settleFields(e dataplane.Event) {
	now := map[string]string{}
	var order []string
	for _, r := range f.sw.Readings(e) {
		name := r.Header + "." + r.Field
		now[name] = show(r.Value, r.Width)
		order = append(order, name)
	}
	before, seen := f.fields[e.Packet]
	f.fields[e.Packet] = now
	i, ok := f.last[e.Packet]
	if !seen || !ok {
		return
	}
	for _, name := range order {
		if old, had := before[name]; !had || old != now[name] {
			f.change(i, change{name, old, now[name]})
		}
	}
	for _, name := range sortedKeys(before) {
		if _, still := now[name]; !still {
			f.change(i, change{name, before[name], ""})
		}
	}
}

// settleRegisters assigns changes of registers to the latest step.
func (f *follower) settleRegisters() {
	for k := range f.registers {
		r := &f.registers[k]
		now, words := f.sw.Registers().Now(r.name)
		if slices.Equal(now, r.cells) {
			continue
		}
		for c := 0; c+words <= len(now); c += words {
			if slices.Equal(now[c:c+words], r.cells[c:c+words]) {
				continue
			}
			if len(f.walk.Steps) > 0 {
				f.change(f.newest, change{fmt.Sprintf("%s[%d]", r.name, c/words), wide(r.cells[c : c+words]).String(), wide(now[c : c+words]).String()})
			}
		}
		copy(r.cells, now)
	}
}

func (f *follower) change(step int, c change) {
	if s := &f.walk.Steps[step]; len(s.Changes) < maxChanges {
		s.Changes = append(s.Changes, c)
	}
}

// wide converts words to a number; the first word is the least significant.
func wide(words []uint64) *big.Int {
	v := new(big.Int)
	for i := len(words) - 1; i >= 0; i-- {
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(words[i]))
	}
	return v
}

// show formats a field: MAC and IPv4 addresses by their widths, others as numbers.
func show(v *big.Int, width int) string {
	switch {
	case width == 48:
		b := v.FillBytes(make([]byte, 6))
		return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5])
	case width == 32 && v.BitLen() > 24:
		b := v.FillBytes(make([]byte, 4))
		return fmt.Sprintf("%d.%d.%d.%d", b[0], b[1], b[2], b[3])
	case width > 64:
		return fmt.Sprintf("0x%x", v)
	}
	return v.String()
}

// test returns the test with the output packets as its only expectations.
// Consecutive input packets share their expectations, as in p4lb test.
func (f *follower) test(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 0 && (strings.EqualFold(fields[0], "expect") || strings.EqualFold(fields[0], "no_packet")) {
			continue
		}
		b.WriteString(line + "\n")
		for _, o := range f.outputs[i+1] {
			fmt.Fprintf(&b, "expect %d %X$\n", o.port, o.data)
		}
	}
	return b.String()
}
