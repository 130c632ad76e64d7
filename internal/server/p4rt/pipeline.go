package p4rt

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// A pipeline is a program with all that the control plane has put into it. It
// works before packets go through it, so that a saved configuration can be
// filled before it is committed.
type pipeline struct {
	config *p4v1.ForwardingPipelineConfig
	info   *info
	sw     *dataplane.Switch
	dev    *Device
	log    *slog.Logger

	keys *Keys // of the batch that is being written

	tables       map[uint32]*tableState
	profiles     map[uint32]*profileState
	meters       map[uint32]*versioned[*p4v1.MeterConfig] // of cells that have one
	multicast    versioned[*p4v1.MulticastGroupEntry]
	clones       versioned[*p4v1.CloneSessionEntry]
	valueSets    map[uint32][]*p4v1.ValueSetMember
	digests      map[uint32]*digester
	digestByName map[string]*digester
	actionByName map[string]*actionInfo

	// readers are the answers in progress that ask what packets change.
	readers atomic.Int32
}

// must takes an error of the data plane for something that has been checked:
// it says that the two halves disagree, which is a bug, but no reason for the
// switch to stop.
func (p *pipeline) must(err error) {
	if err != nil {
		p.log.Error("control plane and data plane disagree", "error", err)
	}
}

// clock is the time of the data plane.
func (p *pipeline) clock() time.Duration { return p.dev.now() }

var errNoPipeline = failf(codes.FailedPrecondition, "there is no forwarding pipeline config yet")

// table finds the table that an entry names.
func (p *pipeline) table(id uint32) (*tableState, error) {
	if t := p.tables[id]; t != nil {
		return t, nil
	}
	return nil, failf(codes.InvalidArgument, "there is no table %#x", id)
}

// A tableState is what the control plane has put into a table. Entries are kept
// as the client wrote them, so that reading gives back what was written; the
// data plane has its own form of them under a handle.
type tableState struct {
	info    *tableInfo
	kinds   []dataplane.MatchKind // of the key, as the data plane has it
	entries map[string]*tableEntry
	// byHandle has the entries of a table whose entries time out, idleFrom is the
	// first that is looked at for it next; nobody else uses it.
	byHandle map[dataplane.Handle]*tableEntry
	idleFrom int
	// rows are the entries in no particular but reproducible order, for those
	// who read the table while it changes.
	rows versioned[row]
	// def is the default entry, initial what the program makes of it.
	def, initial *p4v1.TableEntry
	constDefault bool
	constEntries bool
	// counting and metering are the actions that execute the table's direct
	// counter and meter; nil stands for all.
	counting, metering map[uint32]bool
}

// A tableEntry is an entry of a table. Its message must not be changed once it
// is here: readers share it.
type tableEntry struct {
	msg    *p4v1.TableEntry
	handle dataplane.Handle
	id     string
	at     uint32 // in rows
	use    use
	// last is what a reader who began before it was removed is told of it.
	last *lastSeen
}

// A row is an entry with the message that it had when a reader began.
type row struct {
	msg   *p4v1.TableEntry
	entry *tableEntry
}

// lastSeen is what packets change of an entry, as far as its table has it.
type lastSeen struct {
	counter *p4v1.CounterData
	meter   *p4v1.MeterCounterData
	idle    *p4v1.TableEntry_IdleTimeout
}

// kept is what is kept of a written entry: the message itself, which servers and
// versions of a pipeline then share, if there is nothing to leave out.
func kept(m *p4v1.TableEntry) *p4v1.TableEntry {
	if m.CounterData == nil && m.MeterCounterData == nil && m.TimeSinceLastHit == nil && len(m.ProtoReflect().GetUnknown()) == 0 {
		return m
	}
	return stored(m)
}

// stored is a written entry without what packets change.
func stored(m *p4v1.TableEntry) *p4v1.TableEntry {
	return &p4v1.TableEntry{
		TableId: m.GetTableId(), Match: m.GetMatch(), Action: m.GetAction(), Priority: m.GetPriority(),
		//lint:ignore SA1019 clients that predate Metadata have their cookie here
		ControllerMetadata: m.GetControllerMetadata(),
		Metadata:           m.GetMetadata(), MeterConfig: m.GetMeterConfig(),
		IsDefaultAction: m.GetIsDefaultAction(), IdleTimeoutNs: m.GetIdleTimeoutNs(), IsConst: m.GetIsConst(),
	}
}

func (t *tableState) timesOut() bool {
	return t.info.GetIdleTimeoutBehavior() != configv1.Table_NO_TIMEOUT
}

// change gives an entry another message.
func (t *tableState) change(e *tableEntry, m *p4v1.TableEntry) {
	e.msg = m
	t.rows.set(e.at, row{m, e})
}

func (t *tableState) add(e *tableEntry) {
	t.entries[e.id] = e
	e.at = uint32(t.rows.len())
	t.change(e, e.msg)
	if t.timesOut() {
		t.byHandle[e.handle] = e
	}
}

func (t *tableState) remove(e *tableEntry) {
	delete(t.entries, e.id)
	delete(t.byHandle, e.handle)
	last := uint32(t.rows.len() - 1)
	moved, _ := t.rows.get(last)
	moved.entry.at = e.at
	t.change(moved.entry, moved.msg)
	t.rows.delete(last)
}

// defaultEntry is the default entry as one among others. It is made when it is
// needed: def is what lasts.
func (t *tableState) defaultEntry() *tableEntry {
	return &tableEntry{msg: t.def, handle: dataplane.DefaultEntry}
}

// again is what an entry has become when a batch is taken back.
func (t *tableState) again(e *tableEntry) *tableEntry {
	if e.handle == dataplane.DefaultEntry {
		return t.defaultEntry()
	}
	return t.entries[e.id]
}

func (t *tableState) failf(code codes.Code, format string, args ...any) error {
	return prefixed(failf(code, format, args...), "table %s", t.info.name)
}

// refused gives an error of the data plane the code of the specification.
func (t *tableState) refused(err error) error {
	if err == nil {
		return nil
	}
	code := codes.InvalidArgument
	switch {
	case errors.Is(err, dataplane.ErrTableFull):
		code = codes.ResourceExhausted
	case errors.Is(err, dataplane.ErrDuplicate):
		code = codes.AlreadyExists
	case errors.Is(err, dataplane.ErrImmutable), errors.Is(err, dataplane.ErrConstDefault), errors.Is(err, dataplane.ErrConstAction):
		code = codes.PermissionDenied
	}
	return recode(err, code)
}

// A profileState is an action profile or selector: members, groups of them,
// and the groups that one-shot entries bring along. The specification allows
// members and groups or one-shots, not both.
type profileState struct {
	info     *profileInfo
	members  map[uint32]*member
	groups   map[uint32]*group
	oneShots map[*group]bool
	// memberMsgs and groupMsgs are the messages of members and groups, for those
	// who read them while they change.
	memberMsgs versioned[*p4v1.ActionProfileMember]
	groupMsgs  versioned[*p4v1.ActionProfileGroup]
	// oneShotSize is the sum of their sizes.
	oneShotSize int
}

// A member is an action that entries and groups share. In a group it can have
// a weight: the data plane then has as many copies of it, since there a member
// is in a group once.
type member struct {
	msg    *p4v1.ActionProfileMember
	call   dataplane.ActionCall
	copies []dataplane.Handle // the first is the one for table entries
	uses   int                // by table entries
	groups int                // that it is in
}

// A group is a set of members of which the program's selector picks one per
// packet. The data plane knows those alone whose watch port is up.
type group struct {
	profile *profileState
	msg     *p4v1.ActionProfileGroup // nil for a one-shot
	handle  dataplane.Handle
	parts   []groupPart
	active  []dataplane.Handle
	uses    int // by table entries
	size    int // of a one-shot
}

type groupPart struct {
	member *member
	weight int
	// port is watched if watch is set.
	port  uint32
	watch bool
}

// A target is what a table entry leads to.
type target struct {
	use
	data dataplane.Target
}

// A use is what an entry needs to stay.
type use struct {
	member *member
	group  *group
}

// A digester collects the records of one digest into lists. Records come while
// a packet is processed, so it takes no lock but its own.
type digester struct {
	id   uint32
	info *digestInfo
	send func(*p4v1.DigestList)

	mu      sync.Mutex
	config  *p4v1.DigestEntry_Config // nil: the digest is off
	pending []string                 // records, none twice
	known   map[string]uint64        // a record pending (0) or sent, by list
	lists   map[uint64]*sentList
	order   []uint64 // of lists, oldest first
	last    uint64   // list id
	timer   *time.Timer
}

// A journal remembers how to take back what a batch has done. A nil journal
// remembers nothing: a batch that continues on error needs none.
type journal struct {
	undo []func()
}

func (j *journal) add(undo func()) {
	if j != nil {
		j.undo = append(j.undo, undo)
	}
}

// rollBack takes everything back, last things first: each step then finds the
// state that its update has left.
func (j *journal) rollBack() {
	for i := len(j.undo) - 1; i >= 0; i-- {
		j.undo[i]()
	}
	j.undo = nil
}
