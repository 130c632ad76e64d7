package tofino

import (
	"context"
	"io"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// A change is an update of P4Runtime translated to BfRt.
type change struct {
	list []*wire.Update
	err  error // reason why it cannot be translated
	// after contains updates to send if all of list succeed, and undo contains updates to send if
	// one fails.
	after, undo []*wire.Update
}

// Write writes a batch. An update of P4Runtime may need several updates of BfRt; the first error
// is its result.
func (s *session) Write(ctx context.Context, req *p4v1.WriteRequest, _ ...grpc.CallOption) (*p4v1.WriteResponse, error) {
	p, err := s.ours(ctx)
	if err != nil {
		return nil, err
	}
	var all []*wire.Update
	changes := make([]change, len(req.GetUpdates()))
	in := newBatch()
	for i, u := range req.GetUpdates() {
		changes[i] = s.updates(ctx, p, u, in)
		all = append(all, changes[i].list...)
	}
	var each []*wire.Error
	if len(all) > 0 {
		if each, err = s.write(ctx, s.place().everywhere(), all); err != nil {
			return nil, err
		}
	}
	var details []*p4v1.Error
	var later []*wire.Update
	refused := false
	for _, c := range changes {
		e := &p4v1.Error{}
		if c.err != nil {
			e.CanonicalCode, e.Message = int32(status.Code(c.err)), status.Convert(c.err).Message()
		}
		for range c.list {
			if len(each) == 0 {
				break
			}
			if each[0].GetCanonicalCode() != int32(codes.OK) && e.CanonicalCode == int32(codes.OK) {
				e.CanonicalCode, e.Message = each[0].GetCanonicalCode(), each[0].GetMessage()
			}
			each = each[1:]
		}
		if failed := e.CanonicalCode != int32(codes.OK); failed {
			later, refused = append(later, c.undo...), true
		} else {
			later = append(later, c.after...)
		}
		details = append(details, e)
	}
	if len(later) > 0 {
		// If another entry uses a member or group, it stays.
		if _, err := s.write(ctx, s.place().everywhere(), later); err != nil {
			return nil, err
		}
	}
	if !refused {
		return &p4v1.WriteResponse{}, nil
	}
	st := status.New(codes.Unknown, "updates were refused")
	for _, d := range details {
		if st, err = st.WithDetails(d); err != nil {
			return nil, err
		}
	}
	return nil, st.Err()
}

var kinds = map[p4v1.Update_Type]wire.Update_Type{
	p4v1.Update_INSERT: wire.Update_INSERT, p4v1.Update_MODIFY: wire.Update_MODIFY, p4v1.Update_DELETE: wire.Update_DELETE,
}

func (s *session) updates(ctx context.Context, p *program, u *p4v1.Update, in *batch) (c change) {
	kind := kinds[u.GetType()]
	if e := u.GetEntity().GetTableEntry(); e != nil {
		out, err := p.entry(e)
		if err != nil {
			return change{err: err}
		}
		if t := p.byP4[e.GetTableId()]; t.in != nil && !e.GetIsDefaultAction() {
			return s.indirect(ctx, t, kind, e, out, in)
		}
		switch {
		case e.GetIsDefaultAction() && e.GetAction() == nil:
			kind = wire.Update_DELETE // restore the default action of the program
		case kind == wire.Update_DELETE:
			out.Data = nil
		}
		return change{list: []*wire.Update{update(kind, out)}}
	}
	r := u.GetEntity().GetPacketReplicationEngineEntry()
	switch {
	case u.GetEntity().GetActionProfileMember() != nil:
		return p.member(kind, u.GetEntity().GetActionProfileMember())
	case u.GetEntity().GetActionProfileGroup() != nil:
		return p.memberGroup(kind, u.GetEntity().GetActionProfileGroup())
	case r.GetCloneSessionEntry() != nil:
		c.list, c.err = s.mirror(ctx, kind, r.GetCloneSessionEntry())
	case r.GetMulticastGroupEntry() != nil:
		c.list, c.err = s.group(ctx, kind, r.GetMulticastGroupEntry())
	default:
		c.err = status.Error(codes.Unimplemented, "this kind of entity is not written over BfRt")
	}
	return c
}

// An answer is the result of a read, as a stream.
type answer struct {
	grpc.ClientStream
	list []*p4v1.Entity
	done bool
}

// Recv returns the whole result at once.
func (a *answer) Recv() (*p4v1.ReadResponse, error) {
	if a.done {
		return nil, io.EOF
	}
	a.done = true
	return &p4v1.ReadResponse{Entities: a.list}, nil
}

// Read reads tables, default actions, clone sessions, multicast groups, and members and groups
// of action profiles that no entry refers to.
func (s *session) Read(ctx context.Context, req *p4v1.ReadRequest, _ ...grpc.CallOption) (p4v1.P4Runtime_ReadClient, error) {
	p, err := s.ours(ctx)
	if err != nil {
		return nil, err
	}
	a := &answer{}
	var ask []*wire.TableEntry
	for _, e := range req.GetEntities() {
		r := e.GetPacketReplicationEngineEntry()
		switch {
		case e.GetTableEntry() != nil:
			list, err := p.ask(e.GetTableEntry())
			if err != nil {
				return nil, err
			}
			ask = append(ask, list...)
		case e.GetActionProfileMember() != nil:
			members, _, err := s.foreign(ctx, p, e.GetActionProfileMember().GetActionProfileId())
			if err != nil {
				return nil, err
			}
			a.list = append(a.list, members...)
		case e.GetActionProfileGroup() != nil:
			_, groups, err := s.foreign(ctx, p, e.GetActionProfileGroup().GetActionProfileId())
			if err != nil {
				return nil, err
			}
			a.list = append(a.list, groups...)
		case r.GetCloneSessionEntry() != nil:
			err = s.mirrors(ctx, a)
		case r.GetMulticastGroupEntry() != nil:
			err = s.groups(ctx, a)
		default:
			err = status.Error(codes.Unimplemented, "this kind of entity is not read over BfRt")
		}
		if err != nil {
			return nil, err
		}
	}
	held := map[*table]*holding{}
	for _, e := range ask {
		if t := p.byID[e.GetTableId()]; t != nil && t.in != nil && held[t] == nil {
			if held[t], err = s.held(ctx, t); err != nil {
				return nil, err
			}
		}
	}
	err = s.read(ctx, s.place().everywhere(), ask, func(e *wire.TableEntry) error {
		t := p.byID[e.GetTableId()]
		if t == nil {
			return status.Errorf(codes.DataLoss, "the switch answers with an entry of table %d, which was not asked for", e.GetTableId())
		}
		out := t.back(e)
		if h := held[t]; h != nil && !e.GetIsDefaultEntry() {
			out.Action = h.action(t, e.GetData())
		}
		a.list = append(a.list, &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: out}})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// ask returns the entries to request for an entry of P4Runtime. An entry without a
// table stands for the entries of all tables.
func (p *program) ask(e *p4v1.TableEntry) ([]*wire.TableEntry, error) {
	flags := &wire.TableFlags{FromHw: false}
	if e.GetTableId() != 0 {
		t := p.byP4[e.GetTableId()]
		if t == nil {
			return nil, status.Errorf(codes.NotFound, "there is no table %d", e.GetTableId())
		}
		return []*wire.TableEntry{{TableId: t.schema.ID, IsDefaultEntry: e.GetIsDefaultAction(), TableFlags: flags}}, nil
	}
	var list []*wire.TableEntry
	for _, t := range p.byP4 {
		if len(t.keys) > 0 && !t.p4.Fixed {
			list = append(list, &wire.TableEntry{TableId: t.schema.ID, TableFlags: flags})
		}
	}
	slices.SortFunc(list, func(a, b *wire.TableEntry) int { return int(int64(a.GetTableId()) - int64(b.GetTableId())) })
	return list, nil
}
