package spec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Flow is a transfer of bytes from one host to another.
type Flow struct {
	Src, Dst int // indices in Topology.Hosts
	Service  int // number of the destination service, from 1; Dst is then its first server. 0: none
	Bytes    int64
	Start    time.Duration // start time; the earliest, if the flow waits for others

	// Group numbers the transfers that belong together, such as the responses to a request, from
	// 1; 0: the flow is on its own.
	Group int
	// Class is the name of the flow's source, such as a traffic or job.
	Class string

	Kind string  // transport; "": the case's
	Rate Bitrate // rate of UDP

	Waits      *Waits    // flows that it waits for; nil: none
	Instance   *Instance // instance that it is part of; nil: none
	Job        *JobRun   // job that it is part of; nil: none
	Ends       int32     // iteration of Job that ends on Src with this computation, from 1; 0: none
	Connection int32     // number of a connection shared with other flows, from 1; 0: its own
	QueuePair  bool      // the flows of the connection also share ports and the state of entropy
	Compute    bool      // a computation on Src that takes Waits.Delay, instead of a transfer
	Background bool
}

// Waits lists the flows that a flow waits for, by index, and the delay after the last of them.
type Waits struct {
	After    []int32 // flows that must have arrived
	AfterAck []int32 // flows that must be acknowledged
	Delay    time.Duration
}

// An Instance is one execution of a collective operation, or one flow list.
type Instance struct {
	Kind      string // "" for a flow list
	Bytes     int64  // size of a rank's buffer
	Ranks     int    // number of ranks in a group
	Iteration int    // counted from 0
}

// moved returns the waits after flows have moved to other indices.
func (w *Waits) moved(to func(int32) int32) *Waits {
	return &Waits{After: lists.Map(w.After, to), AfterAck: lists.Map(w.AfterAck, to), Delay: w.Delay}
}

// The possible columns of a flow list. HPCC's class and port are ignored.
var flowColumns = []string{"src", "dst", "bytes", "start_s", "class", "port", "id", "after", "after-ack", "delay"}

// parseFlows reads a flow list. Each line describes a flow as "src dst bytes start_s", or as "src
// dst class port bytes start_s" like HPCC's simulator, separated by spaces or commas. Hosts are
// given by name, or by index from 0. # starts a comment. The first line may state the number of
// flows. It may instead name the columns, which may then have any order and include id, after,
// after-ack and delay. A line without dst and bytes is a computation on src with the length
// delay.
func parseFlows(file string, text []byte, t *fabric.Topology) ([]Flow, error) {
	p := &flowParser{file: file, hosts: map[string]int{}, stated: -1}
	for i := range t.NICs() {
		p.hosts[strconv.Itoa(i)] = i
	}
	for i, h := range t.Hosts[:t.NICs()] {
		p.hosts[h.Name] = i
	}
	p.receivers = maps.Clone(p.hosts)
	for i, s := range t.Services {
		p.receivers[s.Name] = len(t.Hosts) + i
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	n := 1
	for ; lines.Scan(); n++ {
		if err := p.line(lines.Text(), n); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	if lines.Err() != nil {
		return nil, fmt.Errorf("%s:%d: a line of more than %d bytes", file, n, bufio.MaxScanTokenSize)
	}
	if len(p.flows) == 0 {
		return nil, fmt.Errorf("%s: there is no flow", file)
	}
	if p.stated >= 0 && p.stated != len(p.flows) {
		return nil, fmt.Errorf("%s: the first line says %d flows, and there are %d", file, p.stated, len(p.flows))
	}
	for i := range p.flows {
		if err := p.flows[i].settle(t); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, p.lines[i], err)
		}
	}
	return p.flows, p.resolve()
}

// settle converts a destination beyond the hosts to a service.
func (f *Flow) settle(t *fabric.Topology) error {
	if f.Dst < len(t.Hosts) {
		return nil
	}
	f.Service = f.Dst - len(t.Hosts) + 1
	s := &t.Services[f.Service-1]
	if slices.Contains(s.Servers, t.Hosts[f.Src].Name) {
		return fmt.Errorf("%s is a server of %s: want a flow from another host", t.Hosts[f.Src].Name, s.Name)
	}
	f.Dst = slices.IndexFunc(t.Hosts, func(h fabric.Host) bool { return h.Name == s.Servers[0] })
	return nil
}

// To returns the name of the destination: a host or a service.
func (f *Flow) To(t *fabric.Topology) string {
	if f.Service > 0 {
		return t.Services[f.Service-1].Name
	}
	return t.Hosts[f.Dst].Name
}

// A flowParser is the state of parsing a flow list.
type flowParser struct {
	file      string
	hosts     map[string]int
	receivers map[string]int // indices by name: hosts, then services
	columns   []string       // nil: the file does not name them
	started   bool           // the first line has been read
	stated    int            // number of flows stated in the first line; -1: not stated
	flows     []Flow
	lines     []int // line numbers by flow
	ids       map[string]int32
	names     []string // ids by flow
	waits     []listedWaits
}

// listedWaits are the ids that a flow waits for, as given in its line.
type listedWaits struct {
	flow            int
	after, afterAck string
	delay           time.Duration
}

func (p *flowParser) line(line string, n int) error {
	line, _, _ = strings.Cut(line, "#")
	fields := p.split(line)
	if len(fields) == 0 {
		return nil
	}
	first := !p.started
	p.started = true
	if first && slices.Contains(fields, "src") {
		return p.head(fields)
	}
	if count, err := strconv.Atoi(fields[0]); first && err == nil && len(fields) == 1 {
		p.stated = count
		return nil
	}
	var f Flow
	var err error
	if p.columns == nil {
		f, err = parseFlow(fields, p.hosts, p.receivers)
	} else {
		f, err = p.named(fields)
	}
	if err != nil {
		return err
	}
	p.flows, p.lines = append(p.flows, f), append(p.lines, n)
	return nil
}

// other returns the name of any host except the given one.
func (p *flowParser) other(name string) string {
	if p.hosts[name] == 0 {
		return "1"
	}
	return "0"
}

// split splits a line at commas or spaces. Fields between commas may be empty if the list names
// its columns.
func (p *flowParser) split(line string) []string {
	if p.columns == nil || !strings.Contains(line, ",") {
		return strings.FieldsFunc(line, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	}
	fields := strings.Split(line, ",")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return fields
}

// head reads the names of the columns.
func (p *flowParser) head(fields []string) error {
	for i, name := range fields {
		if !slices.Contains(flowColumns, name) {
			return fmt.Errorf("column %q: want one of %s", name, strings.Join(flowColumns, ", "))
		}
		if slices.Contains(fields[:i], name) {
			return fmt.Errorf("column %q: there are two", name)
		}
	}
	for _, name := range []string{"src", "dst", "bytes"} {
		if !slices.Contains(fields, name) {
			return fmt.Errorf("there is no column %q", name)
		}
	}
	if !slices.Contains(fields, "id") && (slices.Contains(fields, "after") || slices.Contains(fields, "after-ack")) {
		return errors.New("column after names flows by their id: want a column id")
	}
	p.columns, p.ids = fields, map[string]int32{}
	return nil
}

// named reads a line of a list with named columns.
func (p *flowParser) named(fields []string) (f Flow, err error) {
	if len(fields) != len(p.columns) {
		return f, fmt.Errorf("want %s, got %q", strings.Join(p.columns, ", "), strings.Join(fields, " "))
	}
	get := func(name, usual string) string {
		if i := slices.Index(p.columns, name); i >= 0 && fields[i] != "" && fields[i] != "-" {
			return fields[i]
		}
		return usual
	}
	dst, size := get("dst", ""), get("bytes", "")
	computes := dst == "" && size == ""
	if computes { // a computation of length delay on src
		dst, size = p.other(get("src", "")), "1"
	}
	if f, err = parseFlow([]string{get("src", ""), dst, size, get("start_s", "0")}, p.hosts, p.receivers); err != nil {
		return f, err
	}
	if computes {
		f.Dst, f.Bytes, f.Compute = f.Src, 0, true
	}
	place := len(p.flows)
	if id := get("id", ""); id != "" {
		if _, taken := p.ids[id]; taken {
			return f, fmt.Errorf("id %q: line %d has it too", id, p.lines[p.ids[id]])
		}
		p.ids[id] = int32(place)
		p.names = append(p.names, id)
	} else {
		p.names = append(p.names, "")
	}
	w := listedWaits{flow: place, after: get("after", ""), afterAck: get("after-ack", "")}
	if w.delay, err = time.ParseDuration(get("delay", "0")); err != nil || w.delay < 0 {
		return f, fmt.Errorf("delay %q: want a time such as 10us", get("delay", "0"))
	}
	switch {
	case computes && w.afterAck != "":
		return f, errors.New("after-ack: a computation, with neither dst nor bytes, waits for arrivals: want after")
	case w.after != "" || w.afterAck != "":
		p.waits = append(p.waits, w)
	default:
		f.Start += w.delay
	}
	return f, nil
}

// resolve finds the flows that others wait for.
func (p *flowParser) resolve() error {
	for _, w := range p.waits {
		var err error
		waits := &Waits{Delay: w.delay}
		if waits.After, err = p.places(w.after); err == nil {
			waits.AfterAck, err = p.places(w.afterAck)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", p.file, p.lines[w.flow], err)
		}
		p.flows[w.flow].Waits = waits
	}
	if at, err := waitCycle(p.flows, p.names); err != nil {
		return fmt.Errorf("%s:%d: flows wait for each other: %w", p.file, p.lines[at], err)
	}
	return nil
}

// waitCycle returns an error that names flows in a cycle of waits, and the index of one of them.
func waitCycle(flows []Flow, names []string) (at int, err error) {
	cycle := sim.Cycle(len(flows), func(i int) (after, afterAck []int32) {
		if w := flows[i].Waits; w != nil {
			return w.After, w.AfterAck
		}
		return nil, nil
	})
	if cycle == nil {
		return 0, nil
	}
	ids := lists.Map(cycle, func(i int) string { return names[i] })
	const most = 8
	if len(ids) > most {
		ids = append(ids[:most], fmt.Sprintf("and %d more", len(ids)-most))
	}
	return cycle[0], errors.New(strings.Join(ids, " after "))
}

// places returns the flows of a list of ids separated by semicolons.
func (p *flowParser) places(list string) ([]int32, error) {
	if list == "" {
		return nil, nil
	}
	var places []int32
	for id := range strings.SplitSeq(list, ";") {
		id = strings.TrimSpace(id)
		at, ok := p.ids[id]
		switch {
		case !ok:
			return nil, fmt.Errorf("after %q: there is no flow with this id", id)
		case slices.Contains(places, at):
			return nil, fmt.Errorf("after %q: listed twice", id)
		}
		places = append(places, at)
	}
	return places, nil
}

// maxFlowBytes limits the size of a listed flow, so that times and sums of sizes do not overflow.
const maxFlowBytes = 1 << 50

func parseFlow(fields []string, places, receivers map[string]int) (Flow, error) {
	if len(fields) == 6 { // src dst class port bytes start
		fields = append(fields[:2:2], fields[4:]...)
	}
	if len(fields) != 4 {
		return Flow{}, fmt.Errorf("want src, dst, bytes and start_s, got %q", strings.Join(fields, " "))
	}
	src, okSrc := places[fields[0]]
	dst, okDst := receivers[fields[1]]
	size, errSize := strconv.ParseInt(fields[2], 10, 64)
	start, errStart := strconv.ParseFloat(fields[3], 64)
	switch {
	case !okSrc:
		return Flow{}, fmt.Errorf("src: there is no host %q", fields[0])
	case !okDst && len(receivers) > len(places):
		return Flow{}, fmt.Errorf("dst: there is no host or service %q", fields[1])
	case !okDst:
		return Flow{}, fmt.Errorf("dst: there is no host %q", fields[1])
	case src == dst:
		return Flow{}, fmt.Errorf("dst: %s sends to itself", fields[1])
	case errSize != nil || size < 1:
		return Flow{}, fmt.Errorf("bytes %q: want a whole number above 0", fields[2])
	case size > maxFlowBytes:
		return Flow{}, fmt.Errorf("bytes %d: want at most %d", size, int64(maxFlowBytes))
	case errStart != nil || !(start >= 0 && start < 1e6):
		return Flow{}, fmt.Errorf("start_s %q: want seconds from 0", fields[3])
	}
	return Flow{Src: src, Dst: dst, Bytes: size, Start: time.Duration(math.Round(start * 1e9))}, nil
}

// FlowList writes flows in the format of parseFlows. If some flows wait for others, each flow has
// its index as id.
func FlowList(flows []Flow, t *fabric.Topology) []byte {
	var b bytes.Buffer
	if !slices.ContainsFunc(flows, func(f Flow) bool { return f.Waits != nil || f.Compute }) {
		b.WriteString("# src dst bytes start_s\n")
		for _, f := range flows {
			fmt.Fprintf(&b, "%s %s %d %.9f\n", t.Hosts[f.Src].Name, f.To(t), f.Bytes, f.Start.Seconds())
		}
		return b.Bytes()
	}
	b.WriteString("id src dst bytes start_s after after-ack delay\n")
	for i, f := range flows {
		w := f.Waits
		if w == nil {
			w = new(Waits)
		}
		dst, size := f.To(t), strconv.FormatInt(f.Bytes, 10)
		if f.Compute {
			dst, size = "-", "-"
		}
		fmt.Fprintf(&b, "%d %s %s %s %.9f %s %s %v\n", i, t.Hosts[f.Src].Name, dst, size, f.Start.Seconds(), idList(w.After), idList(w.AfterAck), w.Delay)
	}
	return b.Bytes()
}

// idList writes places as ids.
func idList(places []int32) string {
	if len(places) == 0 {
		return "-"
	}
	return strings.Join(lists.Map(places, func(i int32) string { return strconv.Itoa(int(i)) }), ";")
}
