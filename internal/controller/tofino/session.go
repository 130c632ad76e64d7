package tofino

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// A place is the controller's configuration for a switch.
type place struct {
	device uint32
	mtu    int // packet size for converting rates

	// The planned contents of the switch and their index. Both are nil if only
	// registers are accessed.
	plan  *plan.Switch
	index *p4info.Index
	// config is the program to load, nil if the switch has loaded it.
	config *wire.ForwardingPipelineConfig
	front  fabric.Front // the names of the ports in links
}

// everywhere returns the target of entries that are equal in all pipes.
func (p *place) everywhere() *wire.TargetDevice {
	return &wire.TargetDevice{DeviceId: p.device, PipeId: wire.AllPipes, Direction: wire.AllDirections, PrsrId: wire.AllParsers}
}

// in returns the target of the pipe of a port.
func (p *place) in(port int) *wire.TargetDevice {
	t := p.everywhere()
	t.PipeId = uint32(port) >> 7
	return t
}

// A session is a connection to a switch. It translates the calls of P4Runtime.
type session struct {
	wire  wire.Client
	place func() *place // a function, because the target may get another plan
	// The SDE identifies clients by number. Each session has its own number, so that a delayed
	// request of an earlier session does not count as one of this session.
	client uint32

	mu     sync.Mutex
	told   []byte        // answer from which the following fields were computed
	of     *p4info.Index // program with which it was compared
	prog   *program      // the plan's program; nil: another program runs
	runs   string        // name of the running program if it is not the plan's
	bound  string        // program that this client is bound to
	why    error         // reason why prog is nil
	chip   *bfrt.Schema
	all    []*wire.ForwardingPipelineConfig
	pushed int                 // stream answers still expected for programs that this client has sent
	nodes  map[uint32][]uint32 // nodes of multicast groups, as last read
	front  fabric.Front        // the names of ports on the switch; nil: not read yet
}

// open starts a session over a connection.
func open(conn grpc.ClientConnInterface, where func() *place) target.Session {
	s := &session{wire: wire.Client{Conn: conn}, place: where, client: 1<<16 + rand.Uint32N(1<<30), nodes: map[uint32][]uint32{}}
	return target.Session{Client: s, Registers: &cells{s}, Queues: &queues{s}, Filters: &filters{s}}
}

// look reads the running programs and finds the plan's among them.
func (s *session) look(ctx context.Context) error {
	at := s.place()
	m, err := s.wire.GetForwardingPipelineConfig(ctx, &wire.GetForwardingPipelineConfigRequest{DeviceId: at.device, ClientId: s.client}, callOptions...)
	if err != nil {
		return err
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told != nil && string(text) == string(s.told) && s.of == at.index {
		return nil
	}
	if s.chip, err = parse(m.GetNonP4Config().GetBfruntimeInfo()); err != nil {
		return status.Error(codes.DataLoss, err.Error())
	}
	s.told, s.of, s.all = text, at.index, m.GetConfig()
	s.prog, s.runs, s.why = nil, "", errors.New("it runs no program")
	for _, c := range m.GetConfig() {
		schema, err := parse(c.GetBfruntimeInfo())
		if err != nil {
			return status.Error(codes.DataLoss, err.Error())
		}
		p, err := at.program(c, schema)
		if err == nil {
			s.prog, s.why = p, nil
			return nil
		}
		s.runs, s.why = c.GetP4Name(), fmt.Errorf("it runs %s: %w", c.GetP4Name(), err)
	}
	return nil
}

// program returns a running program if it is the plan's. A program that this
// controller loaded is identified by its name, which contains a hash of the binary,
// because a schema does not contain the constants of the program.
func (p *place) program(c *wire.ForwardingPipelineConfig, schema *bfrt.Schema) (*program, error) {
	if p.index == nil {
		return &program{name: c.GetP4Name(), schema: schema}, nil
	}
	if p.config != nil && !isNamed(c.GetP4Name(), p.config.GetP4Name()) {
		return nil, fmt.Errorf("want %s", p.config.GetP4Name())
	}
	return newProgram(c.GetP4Name(), schema, p.index)
}

// ours returns the plan's program on the switch.
func (s *session) ours(ctx context.Context) (*program, error) {
	s.mu.Lock()
	p := s.prog
	s.mu.Unlock()
	if p != nil {
		return p, nil
	}
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prog == nil {
		return nil, status.Errorf(codes.FailedPrecondition, "the switch does not run the program: %v", s.why)
	}
	return s.prog, nil
}

// chipNamed returns a table that every chip has. name omits the chip's name, with which some
// table names begin.
func (s *session) chipNamed(ctx context.Context, name string) (chipTable, error) {
	s.mu.Lock()
	chip := s.chip
	s.mu.Unlock()
	if chip == nil {
		if err := s.look(ctx); err != nil {
			return chipTable{}, err
		}
		s.mu.Lock()
		chip = s.chip
		s.mu.Unlock()
	}
	for _, t := range chip.Tables {
		if t.Name == name || inPipe(t.Name) == name {
			return chipTable{t}, nil
		}
	}
	return chipTable{}, status.Errorf(codes.Unimplemented, "the switch has no table %s", name)
}

// callOptions allow messages as large as a program.
var callOptions = []grpc.CallOption{grpc.MaxCallRecvMsgSize(1 << 28), grpc.MaxCallSendMsgSize(1 << 28)}

// write sends updates. The switch executes them in order and continues after errors. each
// contains the result of every update, and err an error of the whole call.
func (s *session) write(ctx context.Context, to *wire.TargetDevice, list []*wire.Update) (each []*wire.Error, err error) {
	p, err := s.ours(ctx)
	if err != nil {
		return nil, err
	}
	_, err = s.wire.Write(ctx, &wire.WriteRequest{
		Target: to, ClientId: s.client, P4Name: p.name, Updates: list, Atomicity: wire.WriteRequest_CONTINUE_ON_ERROR,
	}, callOptions...)
	if each = outcomes(err); len(each) == len(list) {
		return each, nil
	}
	return nil, err
}

// set sends updates and returns the first error.
func (s *session) set(ctx context.Context, to *wire.TargetDevice, list ...*wire.Update) error {
	each, err := s.write(ctx, to, list)
	for _, e := range each {
		if e.GetCanonicalCode() != int32(codes.OK) {
			return status.Error(codes.Code(e.GetCanonicalCode()), e.GetMessage())
		}
	}
	return err
}

// outcomes returns the outcomes of all updates or entities in an error of BfRt.
func outcomes(err error) (list []*wire.Error) {
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*wire.Error); ok {
			list = append(list, e)
		}
	}
	return list
}

// read requests entries and calls each for every received entry. A missing entry is not an error.
func (s *session) read(ctx context.Context, to *wire.TargetDevice, list []*wire.TableEntry, each func(*wire.TableEntry) error) error {
	if len(list) == 0 {
		return nil
	}
	p, err := s.ours(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := &wire.ReadRequest{Target: to, ClientId: s.client, P4Name: p.name}
	for _, e := range list {
		req.Entities = append(req.Entities, &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}})
	}
	stream, err := s.wire.Read(ctx, req, callOptions...)
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return notThere(err)
		}
		for _, e := range m.GetEntities() {
			if t := e.GetTableEntry(); t != nil {
				if err := each(t); err != nil {
					return err
				}
			}
		}
	}
}

// notThere returns nil if an error reports only missing entries, and otherwise the error.
func notThere(err error) error {
	if status.Code(err) == codes.NotFound {
		return nil
	}
	list := outcomes(err)
	if len(list) == 0 {
		return err
	}
	for _, e := range list {
		if c := codes.Code(e.GetCanonicalCode()); c != codes.OK && c != codes.NotFound {
			return status.Error(c, e.GetMessage())
		}
	}
	return nil
}

func update(kind wire.Update_Type, e *wire.TableEntry) *wire.Update {
	return &wire.Update{Type: kind, Entity: &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}}}
}

// Capabilities returns the version of P4Runtime that is translated.
func (s *session) Capabilities(context.Context, *p4v1.CapabilitiesRequest, ...grpc.CallOption) (*p4v1.CapabilitiesResponse, error) {
	return &p4v1.CapabilitiesResponse{P4RuntimeApiVersion: "1.3.0"}, nil
}
