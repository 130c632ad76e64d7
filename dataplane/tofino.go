package dataplane

import (
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// A program for Tofino runs in a pipe of two halves, each with a parser, a
// control and a deparser of its own, with the traffic manager between them:
//
//	port → ingress → traffic manager → (a queue per Outcome) → egress → port
//
// What passes between the two are bytes: headers and metadata end with each
// half. The parsers find what the hardware knows of a packet before its first
// byte:
//
//	ingress  intrinsic metadata, port metadata or the header of a resubmit, packet
//	egress   intrinsic metadata, the header of a mirror if it is a copy, packet
//
// The rest of what the hardware tells and is told are the fields of metadata
// of fixed names (ig_prsr_md, ig_dprsr_md, ig_tm_md, eg_prsr_md, eg_dprsr_md,
// and gh_intr_md of the ghost thread).
//
// What differs from the hardware: pipes with one program share its registers, but
// for an Engine that has a Switch for each pipe; lengths leave the four bytes of the frame's checksum out; a queue is as long as
// its caller says, and nothing is deflected from a full one; packets of the generator come when the caller makes
// them. A packet takes no time on its way: of the two times that ingress sees,
// the first is that of Receive (or of the turn, if it comes round), the second
// that of Ingress.

// A tofino runs the program of a Switch as a pipe of Tofino does.
type tofino struct {
	sw   *Switch
	chip chip
	// vector holds headers and metadata of the one packet that is worked on.
	vector []uint64

	programs []program
	of       [pipes]*program // by pipe

	inHeader  ingressHeader
	outHeader egressHeader
	tm        tmFields
	errors    map[uint64]uint64 // bits of parser_err, by the program's error codes

	loops    []bool // by port
	portData [][]byte
	trees    trees

	asked requests
}

// A chip is what differs between Tofino 1 and 2.
type chip struct {
	cell      int    // bytes that queues count in
	portData  int    // bytes of port metadata
	loops     []byte // ports of a pipe that lead round
	generator uint32
	appBits   int // of the number of a packet generator's application
	// selects is whether a mirror can take the other form of the packet.
	selects bool
}

// Loopback lists the ports that lead round to ingress, in all pipes; none for
// architectures other than those of Tofino.
func Loopback(arch string) []uint32 {
	c := chips[arch]
	return c.loopback()
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

// A program is what a pipe runs. Most often all have the same.
type program struct {
	in, out gress
	ghost   *ghost // nil for most programs
}

// at is the program of the pipe that a port belongs to.
func (t *tofino) at(port uint32) *program { return t.of[port/(devPorts/pipes)%pipes] }

// setPrograms gives each pipe its program. Where there are more pipes than the
// document speaks of, they begin again.
func (t *tofino) setPrograms(c *bmv2.Config) {
	t.programs = make([]program, c.Programs())
	of := c.Meta.Pipes
	if len(of) == 0 {
		of = []int{0}
	}
	for i := range t.of {
		t.of[i] = &t.programs[of[i%len(of)]]
	}
}

// A gress is one half of the pipe.
type gress struct {
	parser     *parser
	control    *pipeline
	deparser   *deparser
	readsError bool // its control looks at parser_err

	time, parserErr stdField
	drop, mirrorIO  stdField
}

// forTM is what goes with the bytes of a packet through the traffic manager.
type forTM struct {
	enqTime     time.Duration
	enqDepth    int
	rid         uint16
	ridFirst    bool
	qid, cos    uint8
	bypass      bool // egress
	resubmitted bool
}

// Device ports have 9 bits, of which two name the pipe.
const (
	devPorts = 512
	pipes    = 4
)

// CellSize is how many bytes a cell has, in which the program's queue lengths
// are counted; 0 if they count packets.
func (s *Switch) CellSize() int {
	if s.tofino == nil {
		return 0
	}
	return s.tofino.chip.cell
}

// Cells is what a packet adds to the length of its queue: its cells, or 1 if
// packets are counted.
func (s *Switch) Cells(p *Packet) int {
	return cells(p, s.CellSize())
}

// linkPipe links a program for Tofino.
func (l *linker) linkPipe(c *bmv2.Config) error {
	s := l.sw
	t := &tofino{sw: s, chip: chips[c.Architecture()], vector: make([]uint64, s.lay.Words)}
	s.tofino = t
	t.setPrograms(c)
	err := inTurn(c, l.arrays, l.calculations, l.lists, l.allActions, l.pipelines, l.blocks)
	if err != nil {
		return err
	}
	t.inHeader.find(s.lay)
	t.outHeader.find(s.lay)
	t.tm.find(s.lay)
	room := 0
	for i := range t.programs {
		k := &t.programs[i]
		k.in.find(s.lay, "ig")
		k.out.find(s.lay, "eg")
		room = max(room, k.in.deparser.room()+k.out.deparser.room())
	}
	t.errors = errorBits(c.Errors)
	t.setLoops(s.opts.Loopback)
	t.portData = make([][]byte, devPorts)
	s.headroom = room + t.chip.portData + 2*maxIntrinsic
	return nil
}

func (l *linker) blocks(c *bmv2.Config) error {
	t := l.sw.tofino
	for k := range t.programs {
		for name, g := range map[string]*gress{"ingress": &t.programs[k].in, "egress": &t.programs[k].out} {
			if err := l.half(c, g, bmv2.PipePrefix(k)+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// half links what comes before and behind the control of a half.
func (l *linker) half(c *bmv2.Config, g *gress, name string) (err error) {
	if g.parser, err = l.parser(c, name+"_parser"); err != nil {
		return fmt.Errorf("%s parser: %w", name, err)
	}
	if g.deparser, err = l.deparser(c, name+"_deparser"); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	i := slices.IndexFunc(c.Parsers, func(p *bmv2.Parser) bool { return p.Name == name+"_parser" })
	g.readsError = c.Parsers[i].ReadsError
	return nil
}

// pipeControl files a control under its pipe and half.
func (l *linker) pipeControl(p *bmv2.Pipeline, control *pipeline) {
	t := l.sw.tofino
	for k := range t.programs {
		switch prefix := bmv2.PipePrefix(k); p.Name {
		case prefix + "ingress":
			t.programs[k].in.control = control
		case prefix + "egress":
			t.programs[k].out.control = control
		case prefix + "ghost":
			t.programs[k].ghost = l.ghost(p, control)
		}
	}
}

// find looks up the fields that the hardware itself reads or writes.
func (g *gress) find(l *vector.Layout, prefix string) {
	g.time.find(l, prefix+"_prsr_md", "global_tstamp")
	g.parserErr.find(l, prefix+"_prsr_md", "parser_err")
	g.drop.find(l, prefix+"_dprsr_md", "drop_ctl")
	g.mirrorIO.find(l, prefix+"_dprsr_md", "mirror_io_select")
}

func (f *stdField) find(l *vector.Layout, header, name string) {
	if fd, err := l.Field(header, name); err == nil {
		*f = stdField{off: fd.Off, mask: num.Mask64(min(fd.Width, 64)), ok: true}
	}
}

func (t *tofino) setLoops(ports []uint32) {
	t.loops = make([]bool, devPorts)
	if ports == nil {
		ports = t.chip.loopback()
	}
	for _, port := range ports {
		if port < devPorts {
			t.loops[port] = true
		}
	}
}

// SetPortMetadata sets what the ingress parser finds in front of the packets
// of a port, after the intrinsic metadata; what is missing is zero.
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

// open gives a packet the vector, empty.
func (t *tofino) open(p *Packet, now time.Duration) {
	clear(t.vector)
	p.st.W, p.st.Now = t.vector, now
	p.st.Digest, p.st.ParserError = 0, 0
	t.asked.clear()
}

// close takes it away: only bytes leave a half of the pipe.
func (t *tofino) close(p *Packet) { p.st.W = nil }

func (t *tofino) drop(p *Packet, why string, out []Outcome) []Outcome {
	t.close(p)
	return t.sw.drop(p, why, out)
}

// parse runs a half's parser from head bytes before the packet on. It returns
// false if ingress has to drop the packet for what was wrong: if the program
// does not look at that, or if no transition was found.
func (t *tofino) parse(g *gress, p *Packet, head int) bool {
	p.st.Head = p.st.Start - head
	t.parseFrame(g.parser, p)
	g.time.put(p.st.W, uint64(p.st.Now))
	if p.st.ParserError == uint64(g.parser.codes.none) {
		return true
	}
	wrong := t.errors[p.st.ParserError]
	g.parserErr.put(p.st.W, wrong)
	return wrong == 0 || g.readsError && wrong&errNoMatch == 0
}

// work runs a half's control and what its deparser does before it emits. It
// returns false if an assertion was false.
func (t *tofino) work(g *gress, p *Packet) bool {
	g.control.apply(t.sw, &p.st)
	p.st.Exit = false
	if p.st.Dead {
		return false
	}
	g.deparser.prepare(t.sw, &p.st)
	if p.st.Digest != 0 {
		t.sw.learn(p, p.st.Digest)
	}
	return true
}
