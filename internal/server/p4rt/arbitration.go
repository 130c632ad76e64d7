package p4rt

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/p4lb/p4lb/internal/server/gate"
)

// An electionID is the 128-bit number with which a controller claims a role.
type electionID struct{ high, low uint64 }

func (a electionID) less(b electionID) bool {
	return a.high < b.high || a.high == b.high && a.low < b.low
}

func electionOf(id *p4v1.Uint128) electionID {
	return electionID{id.GetHigh(), id.GetLow()}
}

func (a electionID) proto() *p4v1.Uint128 {
	return &p4v1.Uint128{High: a.high, Low: a.low}
}

// A controller is one stream of a client. Its first arbitration message selects
// the role.
type controller struct {
	out  *outbox
	role *role // nil before the first arbitration message
	// election is valid if claims is set. A controller without an election id
	// can only be a backup.
	election electionID
	claims   bool
}

// A role has at most one primary: the live controller with the highest election
// id that the role has ever seen. After the primary leaves, the role has none
// until a controller claims an id at least as high.
type role struct {
	name    string
	highest electionID
	known   bool // highest is valid
	config  *anypb.Any
	scope   *scope
	primary *controller
	live    []*controller
	left    uint64 // the arbiter's count when the last controller left
	// writes is read-locked by each write in progress, so a new primary can
	// wait for the writes of the old one.
	writes sync.RWMutex
}

// An arbiter decides which controllers may write. It only queues notifications,
// so a slow client cannot block it.
type arbiter struct {
	device uint64
	limits gate.Limits

	mu    sync.Mutex
	roles map[string]*role
	left  uint64 // counts the times that a role lost its last controller
	// primaries lists the primaries of all roles for broadcast. Broadcast runs
	// while packets are processed and must not wait for mu: the holder of mu
	// may wait for a write, which waits for packets.
	primaries atomic.Pointer[[]audience]
}

// An audience is a primary that receives notifications, restricted to the scope
// of its role.
type audience struct {
	out   *outbox
	scope *scope
}

func newArbiter(device uint64, l gate.Limits) *arbiter {
	// The default role exists from the beginning.
	return &arbiter{device: device, limits: l, roles: map[string]*role{"": {}}}
}

// maxRoleName is the longest name of a role in bytes.
const maxRoleName = 1 << 10

// update handles an arbitration message. An error ends the stream.
func (a *arbiter) update(c *controller, u *p4v1.MasterArbitrationUpdate) error {
	if n := len(u.GetRole().GetName()); n > maxRoleName {
		return failf(codes.InvalidArgument, "the name of the role has %d bytes, want at most %d", n, maxRoleName)
	}
	if n := proto.Size(u.GetRole().GetConfig()); n > a.limits.MaxEntity {
		return failf(codes.InvalidArgument, "the role config has %d bytes, want at most %d", n, a.limits.MaxEntity)
	}
	sc, err := newScope(u.GetRole().GetConfig())
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.role == nil {
		err = a.join(c, u)
	} else {
		err = a.checkSame(c, u)
	}
	if err != nil {
		return err
	}
	c.claims, c.election = u.GetElectionId() != nil, electionOf(u.GetElectionId())
	r := c.role
	if !c.claims || r.known && c.election.less(r.highest) {
		a.becomeBackup(c)
		return nil
	}
	a.becomePrimary(c, u.GetRole().GetConfig(), sc)
	return nil
}

// join adds a controller to the role named in its first message.
func (a *arbiter) join(c *controller, u *p4v1.MasterArbitrationUpdate) error {
	if err := a.checkDevice(u.GetDeviceId()); err != nil {
		return err
	}
	name := u.GetRole().GetName()
	r := a.roles[name]
	if r == nil {
		r = &role{name: name}
	}
	if r.taken(c, u.GetElectionId()) {
		return failf(codes.InvalidArgument, "election id %s is in use by another controller", show128(u.GetElectionId()))
	}
	if len(r.live) >= a.limits.MaxControllers {
		return failf(codes.ResourceExhausted, "role %q is at its limit of %d controllers", name, len(r.live))
	}
	if err := a.roomFor(name); err != nil {
		return err
	}
	a.roles[name] = r
	r.live = append(r.live, c)
	c.role = r
	return nil
}

// roomFor makes room for a role. At the limit it forgets the role that has been
// without controllers longest, including its highest election id.
func (a *arbiter) roomFor(name string) error {
	if a.roles[name] != nil || len(a.roles) < a.limits.MaxRoles {
		return nil
	}
	var oldest *role
	for _, r := range a.roles {
		if r.name != "" && len(r.live) == 0 && (oldest == nil || r.left < oldest.left) {
			oldest = r
		}
	}
	if oldest == nil {
		return failf(codes.ResourceExhausted, "too many roles: the limit is %d and all have controllers", len(a.roles))
	}
	delete(a.roles, oldest.name)
	return nil
}

// checkSame checks that a later message fits the controller's device and role.
func (a *arbiter) checkSame(c *controller, u *p4v1.MasterArbitrationUpdate) error {
	switch {
	case u.GetDeviceId() != a.device:
		return failf(codes.FailedPrecondition, "the stream is for device %d, not %d", a.device, u.GetDeviceId())
	case u.GetRole().GetName() != c.role.name:
		return failf(codes.FailedPrecondition, "the stream is for role %q, not %q: another role wants another stream", c.role.name, u.GetRole().GetName())
	case c.role.taken(c, u.GetElectionId()):
		return failf(codes.InvalidArgument, "election id %s is in use by another controller", show128(u.GetElectionId()))
	}
	return nil
}

func (a *arbiter) checkDevice(id uint64) error {
	if id != a.device {
		return failf(codes.NotFound, "there is no device %d here: this is device %d", id, a.device)
	}
	return nil
}

// taken reports whether another live controller uses the election id.
func (r *role) taken(c *controller, id *p4v1.Uint128) bool {
	return id != nil && slices.ContainsFunc(r.live, func(o *controller) bool {
		return o != c && o.claims && o.election == electionOf(id)
	})
}

func (a *arbiter) becomeBackup(c *controller) {
	if c.role.primary != c {
		a.notify(c)
		return
	}
	c.role.primary = nil
	a.publish()
	a.notify(c.role.live...)
}

// becomePrimary follows the order of the specification: revoke the old primary,
// notify the other controllers, wait for writes in progress, notify the new
// primary. The caller holds a.mu, which blocks new writes.
func (a *arbiter) becomePrimary(c *controller, config *anypb.Any, sc *scope) {
	r := c.role
	r.primary, r.highest, r.known = c, c.election, true
	r.config, r.scope = config, sc
	for _, o := range r.live {
		if o != c {
			a.notify(o)
		}
	}
	r.drain()
	a.publish()
	a.notify(c)
}

// drain waits until no write of the role is in progress. The caller holds a.mu,
// so no new one can begin.
func (r *role) drain() {
	r.writes.Lock()
	defer r.writes.Unlock()
}

// leave removes a controller after its stream has ended.
func (a *arbiter) leave(c *controller) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := c.role
	if r == nil {
		return
	}
	r.live = slices.DeleteFunc(r.live, func(o *controller) bool { return o == c })
	if len(r.live) == 0 {
		a.left++
		r.left = a.left
	}
	if r.primary == c {
		r.primary = nil
		a.publish()
		a.notify(r.live...)
	}
}

// notify sends controllers of one role the current state of the arbitration.
func (a *arbiter) notify(list ...*controller) {
	for _, c := range list {
		r := c.role
		u := &p4v1.MasterArbitrationUpdate{DeviceId: a.device, Status: r.statusFor(c)}
		if r.name != "" || r.config != nil {
			u.Role = &p4v1.Role{Name: r.name, Config: r.config}
		}
		if r.known {
			u.ElectionId = r.highest.proto()
		}
		c.out.urgent(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Arbitration{Arbitration: u}})
	}
}

func (r *role) statusFor(c *controller) *rpcstatus.Status {
	switch r.primary {
	case c:
		return &rpcstatus.Status{Code: int32(codes.OK), Message: "you are primary"}
	case nil:
		return &rpcstatus.Status{Code: int32(codes.NotFound), Message: "there is no primary"}
	}
	return &rpcstatus.Status{Code: int32(codes.AlreadyExists), Message: "another controller is primary"}
}

// A permit allows one request of a primary to write until it is released.
type permit struct {
	role  *role
	scope *scope
}

func (p permit) release() { p.role.writes.RUnlock() }

// admit checks that a request comes from the primary of its role.
func (a *arbiter) admit(device uint64, name string, election *p4v1.Uint128) (permit, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkDevice(device); err != nil {
		return permit{}, err
	}
	r := a.roles[name]
	if r == nil {
		return permit{}, failf(codes.NotFound, "there is no role %q", name)
	}
	if election == nil || r.primary == nil || r.highest != electionOf(election) {
		return permit{}, failf(codes.PermissionDenied, "election id %s is not the primary's", show128(election))
	}
	r.writes.RLock()
	return permit{r, r.scope}, nil
}

// readScope returns the scope of a role for a read request.
func (a *arbiter) readScope(device uint64, name string) (*scope, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkDevice(device); err != nil {
		return nil, err
	}
	r := a.roles[name]
	if r == nil {
		return nil, failf(codes.NotFound, "there is no role %q", name)
	}
	return r.scope, nil
}

// isPrimary reports whether c is the primary of its role, and returns the
// role's scope.
func (a *arbiter) isPrimary(c *controller) (*scope, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.role == nil || c.role.primary != c {
		return nil, false
	}
	return c.role.scope, true
}

// publish updates primaries after a change.
func (a *arbiter) publish() {
	var list []audience
	for _, r := range a.roles {
		if r.primary != nil {
			list = append(list, audience{r.primary.out, r.scope})
		}
	}
	a.primaries.Store(&list)
}

// broadcast queues a notification for each primary with access to its object.
func (a *arbiter) broadcast(m *p4v1.StreamMessageResponse, allowed func(*scope) bool) {
	list := a.primaries.Load()
	if list == nil {
		return
	}
	for _, p := range *list {
		if allowed(p.scope) {
			p.out.bulk(m)
		}
	}
}

// show128 formats an election id.
func show128(id *p4v1.Uint128) string {
	switch {
	case id == nil:
		return "(none)"
	case id.GetHigh() == 0:
		return fmt.Sprint(id.GetLow())
	}
	return fmt.Sprintf("%#x%016x", id.GetHigh(), id.GetLow())
}

// A scope is the set of objects that a role may access. The specification
// leaves the format of a role config open; here it is a P4Info with the objects
// of the role. A role without config has a nil scope, which allows everything.
// P4Info does not describe the replication engine, so only roles without config
// may use it.
type scope struct {
	ids                 map[uint32]bool
	packetIn, packetOut bool
}

func newScope(config *anypb.Any) (*scope, error) {
	if config == nil {
		return nil, nil
	}
	var info configv1.P4Info
	if err := config.UnmarshalTo(&info); err != nil {
		return nil, failf(codes.InvalidArgument, "role config: want a p4.config.v1.P4Info with the role's objects: %v", err)
	}
	s := &scope{ids: map[uint32]bool{}}
	for _, p := range preambles(&info) {
		s.ids[p.GetId()] = true
	}
	for _, m := range info.GetControllerPacketMetadata() {
		s.packetIn = s.packetIn || m.GetPreamble().GetName() == packetInName
		s.packetOut = s.packetOut || m.GetPreamble().GetName() == packetOutName
	}
	return s, nil
}

// allows reports whether the role may access the object with the id.
func (s *scope) allows(id uint32) bool { return s == nil || s.ids[id] }

func (s *scope) replicates() bool { return s == nil }

func (s *scope) sendsPackets() bool { return s == nil || s.packetOut }

func (s *scope) receivesPackets() bool { return s == nil || s.packetIn }
