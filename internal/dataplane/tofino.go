package dataplane

import (
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/program"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A program for Tofino runs in a pipe of two halves. Each half has its own
// parser, control and deparser, with the traffic manager between them:
//
//	port → ingress → traffic manager → (a queue per Outcome) → egress → port
//
// Only bytes pass between the halves: headers and metadata end with each half.
// The parsers find the hardware's data before the first byte of the packet:
//
//	ingress  intrinsic metadata, port metadata or the header of a resubmit, packet
//	egress   intrinsic metadata, the header of a mirror if it is a copy, packet
//
// All other inputs and outputs of the hardware are fields of metadata with
// fixed names (ig_prsr_md, ig_dprsr_md, ig_tm_md, eg_prsr_md, eg_dprsr_md, and
// gh_intr_md of the ghost thread).
//
// Differences from the hardware:
//
//	- Pipes with one program share its registers, unless an Engine has a Switch for each pipe.
//	- Lengths do not include the four bytes of the frame check sequence.
//	- The caller sets the capacity of a queue, and a full queue deflects nothing.
//	- The caller creates the packets of the packet generator.
//	- Processing takes no time. Ingress sees two times: the first is the time of Receive (or of the recirculation), the second the time of Ingress.

// A tofino runs the program of a Switch as a pipe of Tofino does.
type tofino struct {
	sw   *Switch
	chip chip
	// words holds the headers and metadata of the packet being processed.
	words []uint64

	programs []threads
	of       [pipes]*threads // programs by pipe

	inHeader  ingressHeader
	outHeader egressHeader
	tm        tmFields
	errors    map[uint64]uint64 // bit of parser_err, by the program's error code

	loops    []bool // whether a port is in loopback, by port
	portData [][]byte
	trees    Trees
}

// A chip holds the differences between Tofino 1 and 2.
type chip struct {
	cell      int    // bytes per cell
	portData  int    // bytes of port metadata
	loops     []byte // recirculation ports of each pipe
	generator uint32
	appBits   int // bits of a generator application's number
	// selects reports whether a mirror can choose between the packet as it came
	// and as it leaves.
	selects bool
}

// Loopback lists the ports that lead back to ingress, in all pipes. Other
// architectures than Tofino's have none.
func Loopback(arch string) []uint32 {
	c := chips[arch]
	return c.loopback()
}

// Loops reports whether packets that leave by a port arrive at it.
func (s *Switch) Loops(port uint32) bool {
	return s.tofino != nil && port < devPorts && s.tofino.loops[port]
}

func (c *chip) loopback() []uint32 {
	ports := []uint32{}
	for pipe := range uint32(pipes) {
		for _, port := range c.loops {
			ports = append(ports, pipe<<7|uint32(port))
		}
	}
	return ports
}

var chips = map[string]chip{
	bmv2.TNA:  {cell: 80, portData: 8, loops: []byte{68, 69, 70, 71}, generator: 68, appBits: 3},
	bmv2.T2NA: {cell: 176, portData: 24, loops: []byte{6}, generator: 6, appBits: 4, selects: true},
}

// A threads holds the programs of a pipe. Usually all pipes have the same programs.
type threads struct {
	in, out gress
	ghost   *ghost // nil for most programs
}

// at returns the threads of the pipe of a port.
func (t *tofino) at(port uint32) *threads { return t.of[port/(devPorts/pipes)%pipes] }

// A gress is one half of the pipe.
type gress struct {
	*program.Half
	time, parserErr program.StdField
	drop, mirrorIO  program.StdField
	flowControl     program.StdField
}

// Device ports have 9 bits, two of which select the pipe.
const (
	devPorts = 512
	pipes    = 4
)

// Priorities returns the number of queues of each port.
func (s *Switch) Priorities() int { return s.opts.Priorities }

// CellSize returns the bytes of a cell, the unit of queue lengths in the
// program; 0 if they count packets.
func (s *Switch) CellSize() int {
	if s.tofino == nil {
		return 0
	}
	return s.tofino.chip.cell
}

// cells returns by how much a packet increases the length of its queue: its cells,
// or 1 if queues count packets.
func (s *Switch) cells(p *Packet) int {
	return cells(p, s.CellSize())
}

// newTofino returns the pipe that runs a linked program.
func newTofino(s *Switch) *tofino {
	c := s.prog.Config
	t := &tofino{sw: s, chip: chips[c.Chip()], words: make([]uint64, s.prog.Layout.Words)}
	// If there are more pipes than programs in the document, the programs
	// repeat.
	t.programs = make([]threads, c.Programs())
	of := c.Meta.Pipes
	if len(of) == 0 {
		of = []int{0}
	}
	for i := range t.of {
		t.of[i] = &t.programs[of[i%len(of)]]
	}
	t.inHeader.find(s.prog.Layout)
	t.outHeader.find(s.prog.Layout)
	t.tm.find(s.prog.Layout)
	room := 0
	for i := range t.programs {
		k, prefix := &t.programs[i], bmv2.PipePrefix(i)
		k.in.Half, k.out.Half = s.prog.Halves[2*i], s.prog.Halves[2*i+1]
		k.in.find(s.prog.Layout, "ig")
		k.out.find(s.prog.Layout, "eg")
		room = max(room, k.in.Deparser.Room()+k.out.Deparser.Room())
		if j := slices.IndexFunc(c.Pipelines, func(p *bmv2.Pipeline) bool { return p.Name == prefix+"ghost" }); j >= 0 {
			k.ghost = newGhost(s.prog, c.Pipelines[j])
		}
	}
	t.errors = program.ErrorBits(c.Errors)
	ports := s.opts.Loopback
	t.loops = make([]bool, devPorts)
	if ports == nil {
		ports = t.chip.loopback()
	}
	for _, port := range slices.Concat(ports, s.opts.Looped) {
		if port < devPorts {
			t.loops[port] = true
		}
	}
	t.portData = make([][]byte, devPorts)
	s.headroom = room + t.chip.portData + 2*maxIntrinsic
	return t
}

// find looks up the fields that the hardware reads or writes.
func (g *gress) find(l *vector.Layout, prefix string) {
	g.time.Find(l, prefix+"_prsr_md", "global_tstamp")
	g.parserErr.Find(l, prefix+"_prsr_md", "parser_err")
	g.drop.Find(l, prefix+"_dprsr_md", "drop_ctl")
	g.mirrorIO.Find(l, prefix+"_dprsr_md", "mirror_io_select")
	g.flowControl.Find(l, prefix+"_dprsr_md", "adv_flow_ctl")
}

// SetPortMetadata sets the bytes after the intrinsic metadata that the ingress
// parser finds before the packets of a port. Missing bytes are zero.
func (s *Switch) SetPortMetadata(port uint32, data []byte) error {
	if s.tofino == nil {
		return fmt.Errorf("port metadata: %w", ErrNotSupported)
	}
	if n := s.tofino.chip.portData; port >= devPorts || len(data) > n {
		return fmt.Errorf("port metadata: port %d is outside 0..%d or %d bytes are more than %d", port, devPorts-1, len(data), n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tofino.portData[port] = slices.Clone(data)
	return nil
}

func (t *tofino) newPacket() *Packet { return &Packet{tm: new(forTM)} }

// vector returns nil: a packet uses the vector of its pipe while it is
// processed.
func (t *tofino) vector() []uint64 { return nil }

func (t *tofino) hasPriority(int) bool { return true }

// open attaches an empty vector to a packet.
func (t *tofino) open(p *Packet, now time.Duration) {
	clear(t.words)
	p.st.W, p.st.Now = t.words, now
	p.st.Digest, p.st.ParserError = 0, 0
	t.sw.prog.Asked.Clear()
}

// close detaches the vector: only bytes leave a half of the pipe.
func (t *tofino) close(p *Packet) { p.st.W = nil }

func (t *tofino) drop(p *Packet, why string, out []Outcome) []Outcome {
	t.close(p)
	return t.sw.drop(p, why, out)
}

// parse runs a half's parser, starting head bytes before the packet. It returns
// false if ingress has to drop the packet because of a parser error: if the
// program ignores errors, or if no transition matched.
func (t *tofino) parse(g *gress, p *Packet, head int) bool {
	p.st.Head = p.st.Start - head
	// The frame check sequence may follow the bytes that the parser has read.
	p.st.Framed, p.st.Check = p.extra == 0, 0
	g.Parser.Run(t.sw.prog, &p.st)
	p.st.Framed = false
	if p.st.Check > 0 && p.st.Head <= p.st.End-p.st.Check {
		p.st.DropCheck()
	}
	g.time.Put(p.st.W, uint64(p.st.Now))
	if p.st.ParserError == uint64(g.Parser.Codes.None) {
		return true
	}
	wrong := t.errors[p.st.ParserError]
	g.parserErr.Put(p.st.W, wrong)
	return wrong == 0 || g.ReadsError && wrong&program.ErrNoMatch == 0
}

// work runs a half's control and the part of its deparser before emit. It
// returns false after a false assertion.
func (t *tofino) work(g *gress, p *Packet) bool {
	g.Control.Apply(t.sw.prog, &p.st)
	p.st.Exit = false
	if p.st.Dead {
		return false
	}
	g.Deparser.Prepare(t.sw.prog, &p.st)
	if p.st.Digest != 0 {
		t.sw.learn(p, p.st.Digest)
	}
	return true
}
