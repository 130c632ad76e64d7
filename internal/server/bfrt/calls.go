package server

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// callOptions holds the options in the metadata of a call.
type callOptions struct {
	ignoreNotFound bool // deleting a missing entry is no error
	inResponse     bool // put the outcomes into the response
	until          time.Time
	stop           <-chan struct{} // closed when the server stops
}

func (s *Server) optionsOf(ctx context.Context) (w callOptions) {
	w.stop = s.stop
	md, _ := metadata.FromIncomingContext(ctx)
	is := func(key string) bool { return slices.Contains(md.Get(key), "1") }
	w.ignoreNotFound, w.inResponse = is("ignore_not_found"), is("error_in_resp")
	var d time.Duration
	for key, unit := range map[string]time.Duration{"deadline_sec": time.Second, "deadline_nsec": time.Nanosecond} {
		for _, v := range md.Get(key) {
			if n, err := strconv.ParseUint(v, 10, 31); err == nil {
				d += time.Duration(n) * unit
			}
		}
	}
	if d > 0 {
		w.until = time.Now().Add(d)
	}
	return w
}

// late returns an error if the deadline has passed or the server stops. A stopping
// server does not finish a batch of a million updates.
func (w *callOptions) late() error {
	select {
	case <-w.stop:
		return failf(codes.Unavailable, "the switch ends")
	default:
	}
	if !w.until.IsZero() && time.Now().After(w.until) {
		return failf(codes.DeadlineExceeded, "the deadline of the client has passed")
	}
	return nil
}

// table returns the table with a number.
func (s *Server) table(p *program, id uint32) (object, error) {
	if o := s.chip.tables[id]; o != nil {
		return o, nil
	}
	if o := p.tables[id]; o != nil {
		return o, nil
	}
	if id == portMaskTable || id == replayTable {
		return nil, failf(unimplemented, "table %#x is not served: the packet generator (pktgen) has no port masks and no replay", id)
	}
	return nil, failf(notFound, "there is no table %#x", id)
}

// Write executes a batch of updates. If one fails, the details of the status hold the
// outcome of every update.
func (s *Server) Write(ctx context.Context, req *wire.WriteRequest) (*wire.WriteResponse, error) {
	if n := len(req.GetUpdates()); n > s.opts.MaxUpdates {
		return nil, failf(codes.ResourceExhausted, "the batch has %d updates, more than %d", n, s.opts.MaxUpdates)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.programFor(req.GetP4Name(), req.GetClientId())
	if err != nil {
		return nil, err
	}
	b := &batch{s: s, p: p, options: s.optionsOf(ctx), last: map[string]func(){}}
	switch a := req.GetAtomicity(); a {
	case wire.WriteRequest_CONTINUE_ON_ERROR:
		b.run(req)
	case wire.WriteRequest_ROLLBACK_ON_ERROR:
		b.rollback = true
		b.run(req)
	case wire.WriteRequest_DATAPLANE_ATOMIC:
		b.rollback, b.held = true, true
		s.chip.ports.hold(func() { b.run(req) })
		for _, f := range b.later {
			f()
		}
	default:
		return nil, invalidf("unknown atomicity %d", a)
	}
	if b.late != nil {
		return nil, b.late
	}
	if b.refused {
		gate.Charge(ctx, len(b.outcomes))
		return nil, refused(b.outcomes)
	}
	m := &wire.WriteResponse{}
	if b.options.inResponse || b.options.ignoreNotFound {
		m.Status = b.outcomes
	}
	return m, nil
}

// A batch is a write or a read in progress.
type batch struct {
	s        *Server
	p        *program
	answer   *answer // nil for a write
	options  callOptions
	rollback bool
	held     bool     // packets are stopped
	later    []func() // runs when packets move again
	last     map[string]func()
	undo     []func()
	outcomes []*wire.Error
	refused  bool
	late     error
}

func (b *batch) run(req *wire.WriteRequest) {
	defer func() {
		for _, f := range b.last {
			f()
		}
	}()
	b.outcomes = make([]*wire.Error, len(req.GetUpdates()))
	good := &wire.Error{}
	for i, u := range req.GetUpdates() {
		if b.late = b.options.late(); b.late != nil {
			return
		}
		err := b.update(req.GetTarget(), u)
		b.outcomes[i] = good
		if err == nil {
			continue
		}
		b.outcomes[i] = outcome(err)
		if errors.Is(err, errModified) || b.options.ignoreNotFound && u.GetType() == wire.Update_DELETE && failureOf(err).code == notFound {
			continue
		}
		b.refused = true
		if b.rollback {
			for _, back := range slices.Backward(b.undo) {
				back()
			}
			b.outcomes = b.outcomes[:i+1]
			b.later = nil
			return
		}
	}
}

// request returns the context of one update or entity of the call.
func (b *batch) request(general, own *wire.TargetDevice, flags *wire.TableFlags) (*request, error) {
	r := &request{s: b.s, target: general, flags: flags}
	if own != nil {
		r.target, r.own = own, own
	}
	if r.target.GetDeviceId() != b.s.opts.Device {
		return nil, invalidf("there is no device %d", r.target.GetDeviceId())
	}
	if b.rollback {
		r.undo = &b.undo
	}
	if b.held {
		r.later = &b.later
	}
	if a := b.answer; a != nil {
		r.out, r.pages, r.rest = a.add, a.addEncoded, a.rest
	}
	r.last = b.last
	return r, nil
}

// about finds the table of an update or entity and calls do with it.
func (b *batch) about(id uint32, general, own *wire.TargetDevice, flags *wire.TableFlags, do func(r *request, o object) error) error {
	o, err := b.s.table(b.p, id)
	if err != nil {
		return err
	}
	r, err := b.request(general, own, flags)
	if err != nil {
		return err
	}
	if err = do(r, o); err == errModified {
		return err
	}
	return within(o.head().schema.Name, err)
}

func (b *batch) update(target *wire.TargetDevice, u *wire.Update) error {
	switch x := u.GetEntity().GetEntity().(type) {
	case *wire.Entity_TableEntry:
		e, flags := x.TableEntry, x.TableEntry.GetTableFlags()
		if f := e.GetTableModIncFlag(); f != nil && flags == nil {
			flags = &wire.TableFlags{ModDel: f.GetType() == wire.TableModIncFlag_MOD_INC_DELETE}
		}
		return b.about(e.GetTableId(), target, e.GetEntryTgt(), flags, func(r *request, o object) error {
			if err := possible(u.GetType(), e); err != nil {
				return err
			}
			return r.whole(o, u.GetType(), e)
		})
	case *wire.Entity_TableAttribute:
		return b.about(x.TableAttribute.GetTableId(), target, nil, nil, func(r *request, o object) error {
			return b.s.setAttribute(r, o, x.TableAttribute)
		})
	case *wire.Entity_TableOperation:
		return b.about(x.TableOperation.GetTableId(), target, nil, nil, func(_ *request, o object) error {
			return operate(o, x.TableOperation.GetTableOperationsType())
		})
	case nil:
		return invalidf("the update has no entity")
	}
	return failf(codes.Unimplemented, "entities of this kind cannot be written")
}

// possible reports an update that is invalid for every table.
func possible(kind wire.Update_Type, e *wire.TableEntry) error {
	switch {
	case kind < wire.Update_INSERT || kind > wire.Update_RESET:
		return invalidf("unknown type of update %v", kind)
	case !e.GetIsDefaultEntry():
		return nil
	case len(e.GetKey().GetFields()) > 0:
		return invalidf("the default entry has no key")
	case kind == wire.Update_INSERT:
		return failf(unimplemented, "the default entry always exists: want modify")
	}
	return nil
}

// Read returns the requested entities. An error of one entity does not stop the
// others; the final status or the last response reports it.
func (s *Server) Read(req *wire.ReadRequest, stream wire.ReadServer) error {
	if n := len(req.GetEntities()); n > maxReads {
		return failf(codes.ResourceExhausted, "the read has %d requests, more than %d", n, maxReads)
	}
	defer s.reads.Add(-1)
	if s.reads.Add(1) > int64(s.opts.MaxReads) {
		return failf(codes.ResourceExhausted, "%d reads are in progress, which is the limit", s.opts.MaxReads)
	}
	w := s.optionsOf(stream.Context())
	a := &answer{s: s, stream: stream}
	defer a.leave()
	if err := a.enter(); err != nil {
		return err
	}
	p, err := s.programFor(req.GetP4Name(), req.GetClientId())
	if err != nil {
		return err
	}
	a.program = p
	b := &batch{s: s, p: p, answer: a}
	outcomes := make([]*wire.Error, len(req.GetEntities()))
	bad, good := false, &wire.Error{}
	for i, e := range req.GetEntities() {
		if err := w.late(); err != nil {
			return err
		}
		err := b.entity(req.GetTarget(), e)
		if a.ended != nil {
			return a.ended
		}
		if outcomes[i] = good; err != nil {
			outcomes[i], bad = outcome(err), true
		}
		if n := len(a.pages); n > 0 && isFull(a.pages[n-1]) || i%walkSize == walkSize-1 {
			if err := a.rest(); err != nil {
				return err
			}
		}
	}
	a.leave()
	if w.inResponse {
		a.last().Status = outcomes
	}
	if err := a.send(len(a.pages)); err != nil {
		return err
	}
	if bad && !w.inResponse {
		return refused(outcomes)
	}
	return nil
}

func (b *batch) entity(target *wire.TargetDevice, e *wire.Entity) error {
	switch x := e.GetEntity().(type) {
	case *wire.Entity_TableEntry:
		e, flags := x.TableEntry, x.TableEntry.GetTableFlags()
		if f := e.GetTableReadFlag(); f != nil && flags == nil {
			flags = &wire.TableFlags{FromHw: f.GetFromHw(), KeyOnly: f.GetKeyOnly()}
		}
		return b.about(e.GetTableId(), target, e.GetEntryTgt(), flags, func(r *request, o object) error { return o.read(r, e) })
	case *wire.Entity_TableUsage:
		id := x.TableUsage.GetTableId()
		return b.about(id, target, nil, nil, func(r *request, o object) error {
			c, ok := o.(counted)
			if !ok {
				return failf(unimplemented, "the table does not count its entries")
			}
			n, err := c.usage(r)
			if err != nil {
				return err
			}
			return r.out(&wire.Entity{Entity: &wire.Entity_TableUsage{TableUsage: &wire.TableUsage{TableId: id, Usage: n}}})
		})
	case *wire.Entity_TableAttribute:
		return b.about(x.TableAttribute.GetTableId(), target, nil, nil, func(r *request, o object) error {
			a, err := b.s.attribute(r, o, x.TableAttribute)
			if err != nil {
				return err
			}
			return r.out(&wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: a}})
		})
	case *wire.Entity_Handle:
		id := x.Handle.GetTableId()
		return b.about(id, target, nil, nil, func(r *request, o object) error {
			h, ok := o.(handled)
			if !ok {
				return failf(unimplemented, "the table's entries have no handles")
			}
			n, err := h.handle(r, x.Handle.GetKey())
			if err != nil {
				return err
			}
			return r.out(&wire.Entity{Entity: &wire.Entity_Handle{Handle: &wire.HandleId{TableId: id, Value: &wire.HandleId_HandleId{HandleId: n}}}})
		})
	case *wire.Entity_ObjectId:
		return b.s.objectID(b.p, x.ObjectId, b.answer)
	case nil:
		return invalidf("the request has no entity")
	}
	return failf(codes.Unimplemented, "entities of this kind cannot be read")
}
