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
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// A pipeline is a program with everything the control plane has written to it.
// It can be filled before packets use it, so a saved configuration can be
// prepared before it is committed.
type pipeline struct {
	config  *p4v1.ForwardingPipelineConfig
	program *sharedProgram // the device config of config
	info    *info
	sw      *dataplane.Switch
	dev     *Device
	log     *slog.Logger

	keys *Keys // cache of the batch being written

	tables       map[uint32]*tableState
	profiles     map[uint32]*profileState
	meters       map[uint32]*versioned[*p4v1.MeterConfig] // configured cells
	multicast    versioned[*p4v1.MulticastGroupEntry]
	clones       versioned[*p4v1.CloneSessionEntry]
	valueSets    map[uint32][]*p4v1.ValueSetMember
	digests      map[uint32]*digester
	digestByName map[string]*digester
	actionByName map[string]*actionInfo

	// readers counts the answers in progress that include data changed by
	// packets.
	readers atomic.Int32
}

// must logs an error of the data plane for a checked operation. Such an error
// means that control plane and data plane disagree, which is a bug; the switch
// continues.
func (p *pipeline) must(err error) {
	if err != nil {
		p.log.Error("control plane and data plane disagree", "error", err)
	}
}

// clock returns the time of the data plane.
func (p *pipeline) clock() time.Duration { return p.dev.now() }

var errNoPipeline = failf(codes.FailedPrecondition, "there is no forwarding pipeline config yet")

// table returns the table with the id.
func (p *pipeline) table(id uint32) (*tableState, error) {
	if t := p.tables[id]; t != nil {
		return t, nil
	}
	return nil, failf(codes.InvalidArgument, "there is no table %#x", id)
}

// A tableState is the state of a table in the control plane. It stores entries
// as the client wrote them, so a read returns them unchanged. The data plane
// has its own form under a handle.
type tableState struct {
	info    *tableInfo
	kinds   []dataplane.MatchKind // match kinds of the key in the data plane
	entries map[string]*tableEntry
	// byHandle indexes the entries if the table has idle timeouts. idleFrom is
	// the position at which the next idle scan starts.
	byHandle map[dataplane.Handle]*tableEntry
	idleFrom int
	// rows lists the entries in an unspecified but reproducible order, for
	// readers of a changing table.
	rows versioned[row]
	// def is the default entry, initial the program's default entry.
	def, initial *p4v1.TableEntry
	constDefault bool
	constEntries bool
	// counting and metering are the actions that execute the table's direct
	// counter and meter; nil stands for all.
	counting, metering map[uint32]bool
}

// An entryText is an entry as the client wrote it, encoded: about a tenth of the size of
// the decoded message.
type entryText string

func textOf(m *p4v1.TableEntry) entryText {
	if text, ok := appendEntry(make([]byte, 0, 128), m); ok {
		return entryText(text)
	}
	text, err := proto.Marshal(m)
	if err != nil {
		panic(err) // the message has been decoded or checked
	}
	return entryText(text)
}

// message decodes the entry.
func (t entryText) message() *p4v1.TableEntry {
	m := &p4v1.TableEntry{}
	if err := proto.Unmarshal([]byte(t), m); err != nil {
		panic(err) // textOf has encoded it
	}
	return m
}

// A tableEntry is an entry of a table.
type tableEntry struct {
	text     entryText
	id       string
	use      use
	handle   dataplane.Handle
	at       uint32 // index in rows
	constant bool   // a const entry of the program
	// last is set when the entry is removed, for readers that still see it.
	last *lastSeen
}

// A row is an entry together with its text at the time of a view.
type row struct {
	text  entryText
	entry *tableEntry
}

// lastSeen is the part of an entry that packets change, as far as its table has
// it.
type lastSeen struct {
	counter *p4v1.CounterData
	meter   *p4v1.MeterCounterData
	idle    *p4v1.TableEntry_IdleTimeout
}

// kept returns the message to store for a written entry: m itself if it
// contains nothing to omit.
func kept(m *p4v1.TableEntry) *p4v1.TableEntry {
	if m.CounterData == nil && m.MeterCounterData == nil && m.TimeSinceLastHit == nil && len(m.ProtoReflect().GetUnknown()) == 0 {
		return m
	}
	return stored(m)
}

// stored returns a copy of a written entry without the parts that packets
// change.
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

// change replaces the text of an entry.
func (t *tableState) change(e *tableEntry, text entryText) {
	e.text = text
	t.rows.set(e.at, row{text, e})
}

func (t *tableState) add(e *tableEntry) {
	t.entries[e.id] = e
	e.at = uint32(t.rows.len())
	t.change(e, e.text)
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
	t.change(moved.entry, moved.text)
	t.rows.delete(last)
}

// defaultEntry returns the default entry as a tableEntry, created on demand
// from def.
func (t *tableState) defaultEntry() *tableEntry {
	return &tableEntry{text: textOf(t.def), handle: dataplane.DefaultEntry}
}

// again returns the current entry with the key of e. Rolling back a batch
// replaces entries.
func (t *tableState) again(e *tableEntry) *tableEntry {
	if e.handle == dataplane.DefaultEntry {
		return t.defaultEntry()
	}
	return t.entries[e.id]
}

func (t *tableState) failf(code codes.Code, format string, args ...any) error {
	return prefixed(failf(code, format, args...), "table %s", t.info.name)
}

// refused converts an error of the data plane to the code of the specification.
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

// A profileState is the state of an action profile or selector: members,
// groups, and the groups of one-shot entries. The specification allows either
// members and groups or one-shots.
type profileState struct {
	info     *profileInfo
	members  map[uint32]*member
	groups   map[uint32]*group
	oneShots map[*group]bool
	// memberMsgs and groupMsgs are the messages of members and groups, for
	// readers of a changing profile.
	memberMsgs versioned[*p4v1.ActionProfileMember]
	groupMsgs  versioned[*p4v1.ActionProfileGroup]
	// oneShotSize is the total size of the one-shot entries.
	oneShotSize int
}

// A member is an action shared by entries and groups. A member with a weight in
// a group has as many copies in the data plane, where a group contains each
// member once.
type member struct {
	msg    *p4v1.ActionProfileMember
	call   dataplane.ActionCall
	copies []dataplane.Handle // the first one is used by table entries
	uses   int                // number of table entries
	groups int                // number of groups
}

// A group is a set of members from which the program's selector picks one per
// packet. The data plane lacks members with a watch port that is down.
type group struct {
	profile *profileState
	msg     *p4v1.ActionProfileGroup // nil for a one-shot
	handle  dataplane.Handle
	parts   []groupPart
	active  []dataplane.Handle
	uses    int // number of table entries
	size    int // size of a one-shot
}

type groupPart struct {
	member *member
	weight int
	// port is valid if watch is set.
	port  uint32
	watch bool
}

// A target is the action, member or group of a table entry.
type target struct {
	use
	data dataplane.Target
}

// A use is the member or group that a table entry refers to.
type use struct {
	member *member
	group  *group
}

// A digester collects the records of one digest into lists. It is called while
// a packet is processed, so it takes no lock but its own.
type digester struct {
	id   uint32
	info *digestInfo
	send func(*p4v1.DigestList)

	mu      sync.Mutex
	config  *p4v1.DigestEntry_Config // nil: the digest is off
	pending []string                 // records without duplicates
	known   map[string]uint64        // list id of each record; 0 while it is pending
	lists   map[uint64]*sentList
	order   []uint64 // ids of sent lists, oldest first
	last    uint64   // id of the last list
	timer   *time.Timer
}

// A journal records how to undo the updates of a batch. A nil journal records
// nothing; a batch that continues on errors needs none.
type journal struct {
	undo []func()
}

func (j *journal) add(undo func()) {
	if j != nil {
		j.undo = append(j.undo, undo)
	}
}

// rollBack undoes all updates in reverse order, so each step finds the state
// that its update left behind.
func (j *journal) rollBack() {
	for i := len(j.undo) - 1; i >= 0; i-- {
		j.undo[i]()
	}
	j.undo = nil
}
