package server

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/server/gate"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// Options are what a server is made of.
type Options struct {
	// Arch is the chip: bmv2.TNA or bmv2.T2NA.
	Arch string
	// Pipes is the number of pipes; 0 stands for 4.
	Pipes int
	// Device is the number of the chip in targets.
	Device uint32
	// TLS, if not nil, is how clients connect.
	TLS *tls.Config
	// Limits bound what clients can take.
	gate.Limits
	// Log gets what happens; nil is silence.
	Log *slog.Logger
}

// maxPipes is the number of pipes that ports can name.
const maxPipes = 4

// A Server serves BfRt for one device.
type Server struct {
	dev  *p4rt.Device
	opts Options
	gate *gate.Gate
	grpc *grpc.Server
	// turn has one while a read has the tables, and reads is how many there are.
	turn  chan struct{}
	reads atomic.Int64

	stop     chan struct{}
	stopOnce sync.Once
	work     sync.WaitGroup

	clients clients
	pace    pace    // of what they say on their streams
	cpu     *uint32 // the port of copies to the CPU

	// mu guards the tables. Who holds it may wait for the device, not the other
	// way round.
	mu       sync.RWMutex
	programs []*program
	pipes    []*dataplane.Switch
	chip     *fixed                                    // the tables of every chip
	config   *wire.GetForwardingPipelineConfigResponse // what they are, once it has been asked for
	begun    []*wire.ForwardingPipelineConfig
}

// An object is a table of the schema at work.
type object interface {
	head() *table
	write(r *request, kind wire.Update_Type, e *wire.TableEntry) error
	read(r *request, e *wire.TableEntry) error
}

// A program is what some of the pipes run, all of them most often.
type program struct {
	s        *Server
	name     string
	info     []byte // its schema
	schema   *bfrt.Schema
	binary   []byte // BMv2 JSON
	config   *bmv2.Config
	profiles []*wire.ForwardingPipelineConfig_Profile
	pipes    []int
	tables   map[uint32]object
	learners map[string]*learner // by list
	hashes   map[string]*hashing
}

// A Program is what Load takes.
type Program struct {
	Name   string
	Schema []byte // BfRt JSON
	Binary []byte // BMv2 JSON
	// Pipes are the pipes that the program runs in; none stands for all.
	Pipes []int
}

// A table is what all tables of the schema have.
type table struct {
	s       *Server
	program *program // nil: every chip has it
	schema  *bfrt.Table
	keys    []keyField
	fields  map[uint32]*datum // of the data, without those of actions
	order   []*datum
	// adjusted is by how many bytes meters see a packet longer, in each pipe.
	adjusted [maxPipes]int32
}

// A matchTable is a match table of the program. What it holds is in the data
// plane; rates and time constants, which that keeps in another form, are here as
// they were given.
type matchTable struct {
	*table
	name    string // in the data plane
	matched []keyField
	ordered uint32 // the field of the priority, 0 if there is none
	actions map[uint32]*entryAction
	byName  map[string]*entryAction
	scope   scope
	attach  attachments
	profile *actionProfile
	select_ *selector
	// Of an entry that goes by a member or a group.
	member, group *datum

	ageing ageing

	// The handles that clients have been told, and of which entries.
	numbers map[entryAt]uint32
	told    map[uint32]entryAt
	next    uint32

	hash wire.DynHashing
}

// An entryAction is an action that entries lead to.
type entryAction struct {
	id     uint32
	name   string
	params []*datum
	miss   bool // it is for the default entry alone
	hit    bool // it is not for the default entry
}

// A place is where an entry is: its handle in each of the pipes, -1 where it is
// not.
type place struct {
	pipes    []int
	handles  []int64
	match    []dataplane.Match
	priority int
}

// An entryAt is an entry in a pipe.
type entryAt struct {
	pipe   int
	handle dataplane.Handle
}

// An actionProfile is the table of a profile's members.
type actionProfile struct {
	*table
	name    string
	actions map[uint32]*entryAction
	byName  map[string]*entryAction
	// The members' handles in the data plane, by pipe and the client's number.
	handles []map[uint32]dataplane.Handle
	copies  []map[uint32][]dataplane.Handle // of members that a group has more than once
	calls   []map[uint32]dataplane.ActionCall
}

// A selector is the table of a profile's groups.
type selector struct {
	*table
	profile *actionProfile
	groups  []map[uint32]*selectGroup // by pipe and number

	members, status, size, offset *datum
	most                          int // members of a group; 0: the program does not say
	notify                        bool
}

// A selectGroup has members in the order in which they came, some of them out of
// use.
type selectGroup struct {
	handle  dataplane.Handle
	members []uint32
	active  []bool
	size    uint32
	offset  *wire.DataField
	there   bool // in the data plane
	whole   bool // it was made for all pipes together
}

// An ageing is the idle timeout of a table's entries.
type ageing struct {
	ttl, hit *datum // nil: the table has none
	config   *wire.IdleTable
	idle     map[entryAt]time.Duration // entries that have been reported, and when
	from     []int
	polled   time.Duration // when hit states were brought up to date last
	passed   sweeps
	active   map[entryAt]bool
	came     map[entryAt]time.Duration
}

// Attachments are what hangs on the entries of a match table: a counter, a meter,
// a cell of registers, a filter.
type attachments struct {
	bytes, packets *datum
	meter          *meterSpec
	registers      []*registerCell
	lpf, wred      *filterSpec

	// What was asked for, by entry: the data plane has it in another form.
	specs map[entryAt]spec
	// Counts as the driver remembers them, which a read that is not of the chip
	// tells.
	known map[entryAt]dataplane.Count
}

// A spec is the rates of a meter, or the constants of a filter, by field.
type spec map[uint32]*wire.DataField

// A learner makes learn notifications of the records of a digest.
type learner struct {
	id     uint32
	list   string
	fields []*datum

	mu      sync.Mutex
	next    uint32
	pending [maxPipes][]*wire.TableData
	timer   *time.Timer
}

// clients has the clients with a stream, by their numbers.
type clients struct {
	mu   sync.Mutex
	open map[uint32]*client
}

// A client is one with a stream.
type client struct {
	id     uint32
	wants  *wire.Subscribe_Notifications
	bound  string // the program, "" if there is none
	outbox *outbox
	gone   chan struct{} // closed once the stream is to end
	why    error         // that it ends, set before
}

// An outbox holds what is to be sent to a client, so that nobody waits for a slow
// one: what finds no room is lost.
type outbox struct {
	mu    sync.Mutex
	list  []*wire.StreamMessageResponse
	cost  int // of list, about, in bytes
	room  int
	all   *gate.Backlog
	ready chan struct{} // has one while there is something
	gone  bool
}

// A pace is when the next message may be heard.
type pace struct {
	mu   sync.Mutex
	next time.Time
}

// A fixed is the tables that every chip has, whatever its program.
type fixed struct {
	s      *Server
	info   []byte // their schema
	tables map[uint32]object

	ports *portTables
	pre   *replicator
}

// A request is what the updates or entities of one call share, and what is known
// of the one at work.
type request struct {
	s      *Server
	target *wire.TargetDevice
	own    *wire.TargetDevice // that of the entry itself, if it has one
	flags  *wire.TableFlags
	undo   *[]func()         // nil: what is done stays done
	later  *[]func()         // nil: packets move
	last   map[string]func() // what is done once, behind the last update
	// Of a read alone.
	out   func(*wire.Entity) error
	pages func(entities []byte) // takes entities that are encoded already
	rest  func() error          // of walks: others have the tables, and full pages go
}

// A scope is a partition of a program's pipes: the entries of a table are the
// same in all pipes of a part.
type scope struct {
	mode  *wire.Mode
	parts [][]int
	// What a client has said of directions and parsers, which share all here.
	gress, parser *wire.Mode
}

// A hashing is a hash of a program, which three tables are about: what it computes
// (algorithm), of what (configure), and what that gives (compute). It is the same in
// all pipes of the program, as the SDE has it.
type hashing struct {
	p     *program
	name  string
	use   *bmv2.Hash
	own   hash.Function // of the program
	parts []hashPart
	bits  int // of them

	slices []hash.Slice // nil: all parts, in their order
	algo   *hash.Function
	rotate int
	seed   *uint64
}

// A meterSpec is how a table says the rates of a meter: in kilobits or in packets
// per second.
type meterSpec struct {
	name               string // in the data plane
	cir, pir, cbs, pbs *datum
	packets            bool
}

// A filterSpec is how a table says the constants of a low-pass filter, or of an
// early detection by one.
type filterSpec struct {
	name                           string // in the data plane
	wred                           bool
	kind, gain, decay, scale       *datum
	constant, least, most, chances *datum
}
