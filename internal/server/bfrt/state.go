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

// Options configure a server.
type Options struct {
	// Arch is the chip: bmv2.TNA or bmv2.T2NA.
	Arch string
	// Pipes is the number of pipes; 0 stands for 4.
	Pipes int
	// Device is the number of the chip in targets.
	Device uint32
	// TLS secures connections; nil means plain text.
	TLS *tls.Config
	// Limits bound the resources of clients.
	gate.Limits
	// Log receives events; nil discards them.
	Log *slog.Logger
}

// maxPipes is the number of pipes that a port number can select.
const maxPipes = 4

// A Server serves BfRt for one device.
type Server struct {
	dev  *p4rt.Device
	opts Options
	gate *gate.Gate
	grpc *grpc.Server
	// turn holds one token while a read uses the tables. reads is the number of
	// reads.
	turn  chan struct{}
	reads atomic.Int64

	stop     chan struct{}
	stopOnce sync.Once
	idle     p4rt.IdleWatch
	work     sync.WaitGroup

	clients clients
	pace    pace    // of the messages on streams
	cpu     *uint32 // the port of copies to the CPU

	// mu guards the tables. Its holder may wait for the device, but the device never
	// waits for it.
	mu       sync.RWMutex
	programs []*program
	pipes    []*dataplane.Switch
	chip     *fixed                                    // the tables of every chip
	config   *wire.GetForwardingPipelineConfigResponse // describes the programs; nil until requested
	begun    []*wire.ForwardingPipelineConfig
}

// usable is the number of ports of a pipe; the first front of them have connectors.
const usable, front = 72, 64

// An object is a table of the schema with its state.
type object interface {
	head() *table
	write(r *request, kind wire.Update_Type, e *wire.TableEntry) error
	read(r *request, e *wire.TableEntry) error
}

// A program runs in some pipes, usually in all of them.
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
	learners map[string]*learner // by field list
	hashes   map[string]*hashing
}

// A Program is an argument of Load.
type Program struct {
	Name   string
	Schema []byte // BfRt JSON
	Binary []byte // BMv2 JSON
	// Pipes are the pipes of the program; nil stands for all.
	Pipes []int
}

// A table is the common part of all objects.
type table struct {
	s       *Server
	program *program // nil: a table of every chip
	schema  *bfrt.Table
	keys    []keyField
	fields  map[uint32]*datum // the fields of the data, without parameters of actions
	order   []*datum
	// adjusted is the number of bytes that meters add to a packet, by pipe.
	adjusted [maxPipes]int32
}

// A matchTable is a match table of the program. The data plane holds the entries.
// Rates and time constants are kept here in the form in which clients gave them.
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
	// The fields for entries with a member or a group.
	member, group *datum

	ageing ageing

	// numbers are the handles that clients know, by entry.
	numbers map[entryAt]uint32
	told    map[uint32]entryAt
	next    uint32

	hash wire.DynHashing
}

// An entryAction is an action of entries.
type entryAction struct {
	id     uint32
	name   string
	params []*datum
	miss   bool // only for the default entry
	hit    bool // not for the default entry
}

// A place locates an entry: its handle in each pipe, or -1 if the pipe does not
// contain it.
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
	// handles are the members' handles in the data plane, by pipe and number.
	handles []map[uint32]dataplane.Handle
	copies  []map[uint32][]dataplane.Handle // additional handles for members that a group contains more than once
	calls   []map[uint32]dataplane.ActionCall
}

// A selector is the table of a profile's groups.
type selector struct {
	*table
	profile *actionProfile
	groups  []map[uint32]*selectGroup // by pipe and number

	members, status, size, offset *datum
	most                          int // the limit of a group's members; 0 if the program has no limit
	notify                        bool
}

// A selectGroup has its members in the order of their insertion. Some may be
// inactive.
type selectGroup struct {
	handle  dataplane.Handle
	members []uint32
	active  []bool
	size    uint32
	offset  *wire.DataField
	there   bool // it is in the data plane
	whole   bool // it was inserted into all pipes at once
}

// An ageing is the idle timeout of a table's entries.
type ageing struct {
	ttl, hit *datum // nil: the table lacks the field
	config   *wire.IdleTable
	idle     map[entryAt]time.Duration // when entries were reported as idle
	from     []int
	polled   time.Duration // the time of the last update of hit states
	passed   sweeps
	active   map[entryAt]bool
	came     map[entryAt]time.Duration
}

// attachments are the counter, the meter, the register cell or the filter of a match
// table's entries.
type attachments struct {
	bytes, packets *datum
	meter          *meterSpec
	registers      []*registerCell
	lpf, wred      *filterSpec

	// specs are the values that clients set, by entry. The data plane has another
	// form.
	specs map[entryAt]spec
	// known are the counts as last synced. Reads that are not from hardware return
	// them.
	known map[entryAt]dataplane.Count
}

// A spec holds the rates of a meter or the constants of a filter, by field.
type spec map[uint32]*wire.DataField

// A learner turns the records of a digest into learn notifications.
type learner struct {
	id     uint32
	list   string
	fields []*datum

	mu      sync.Mutex
	next    uint32
	pending [maxPipes][]*wire.TableData
	timer   *time.Timer
}

// clients are the clients with a stream, by number.
type clients struct {
	mu   sync.Mutex
	open map[uint32]*client
}

// A client is a client with a stream.
type client struct {
	id     uint32
	wants  *wire.Subscribe_Notifications
	bound  string // the program, or ""
	outbox *outbox
	gone   chan struct{} // closed when the stream must end
	why    error         // the cause, set before gone is closed
}

// An outbox buffers messages to a client, so that a slow client blocks no sender. It
// drops messages for which it has no room.
type outbox struct {
	mu    sync.Mutex
	list  []*wire.StreamMessageResponse
	cost  int // estimated bytes of list
	room  int
	all   *gate.Backlog
	ready chan struct{} // holds one token while list is not empty
	gone  bool
}

// A pace limits the rate of messages.
type pace struct {
	mu   sync.Mutex
	next time.Time
}

// A fixed holds the tables that every chip has.
type fixed struct {
	s      *Server
	info   []byte // their schema
	tables map[uint32]object

	ports     *portTables
	pre       *replicator
	generator *generator
}

// A request is the context of one update or entity: the call's, and its own.
type request struct {
	s      *Server
	target *wire.TargetDevice
	own    *wire.TargetDevice // the target in the entry itself, if any
	flags  *wire.TableFlags
	undo   *[]func()         // nil: no rollback
	later  *[]func()         // nil: packets move
	last   map[string]func() // runs once after the last update
	// For reads only.
	out   func(*wire.Entity) error
	pages func(entities []byte) // takes encoded entities
	rest  func() error          // for walks: sends full pages and unlocks the tables for a moment
}

// A scope is a partition of a program's pipes. All pipes of a part have the same
// entries of a table.
type scope struct {
	mode  *wire.Mode
	parts [][]int
	// The scopes of gresses and parsers. Only value sets distinguish them.
	gress, parser *wire.Mode
}

// A hashing is a hash of a program, with three tables: its algorithm (algorithm), its
// input (configure) and its results (compute). It is the same in all pipes of the
// program, as in the SDE.
type hashing struct {
	p     *program
	name  string
	use   *bmv2.Hash
	own   hash.Function // the function that the program names
	parts []hashPart
	bits  int // length of all parts

	slices []hash.Slice // the parts of the key that are hashed; nil: all in their order
	algo   *hash.Function
	rotate int
	seed   *uint64
}

// A meterSpec finds the rates of a meter in a table, in kilobits or packets per
// second.
type meterSpec struct {
	name               string // in the data plane
	fields             specFields
	cir, pir, cbs, pbs *datum
	packets            bool
}

// specFields are a table's fields that configure a meter, a filter or a WRED.
type specFields []*datum

// A filterSpec finds the constants of a low-pass filter or a WRED in a table.
type filterSpec struct {
	name                           string // in the data plane
	wred                           bool
	fields                         specFields
	kind, gain, decay, scale       *datum
	constant, least, most, chances *datum
}
