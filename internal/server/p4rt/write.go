package p4rt

import (
	"context"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/server/gate"
)

// chunk is the number of updates applied before packets get their turn.
const chunk = 64

// Write applies a batch of updates.
func (s *Server) Write(ctx context.Context, req *p4v1.WriteRequest) (*p4v1.WriteResponse, error) {
	if err := s.write(ctx, req, gate.RequestSize(ctx), nil); err != nil {
		return nil, err
	}
	return &p4v1.WriteResponse{}, nil
}

// write applies a batch; size is its size in bytes. keys caches shared messages
// and may be nil.
func (s *Server) write(ctx context.Context, req *p4v1.WriteRequest, size int, keys *Keys) error {
	permit, err := s.arb.admit(req.GetDeviceId(), req.GetRole(), req.GetElectionId())
	if err != nil {
		return err
	}
	defer permit.release()
	s.turns.write()
	defer s.turns.write()
	if n := len(req.GetUpdates()); n > s.limits.MaxUpdates {
		gate.Charge(ctx, n)
		return failf(codes.ResourceExhausted, "the batch has %d updates, want at most %d", n, s.limits.MaxUpdates)
	}
	results := make([]error, len(req.GetUpdates()))
	// The check takes a fifth of the time of a write of routes, so skip it if
	// the whole request is small.
	if size > s.limits.MaxEntity {
		s.rejectLarge(req.GetUpdates(), results)
	}
	if err := s.writeBatch(permit.scope, req, results, keys); err != nil {
		return err
	}
	failed := 0
	for _, err := range results {
		if err != nil {
			failed++
		}
	}
	gate.Charge(ctx, failed)
	return batchError("updates", results)
}

func (s *Server) writeBatch(sc *scope, req *p4v1.WriteRequest, results []error, keys *Keys) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return errNoPipeline
	}
	s.current.keys = keys
	defer func() { s.current.keys = nil }()
	switch req.GetAtomicity() {
	case p4v1.WriteRequest_CONTINUE_ON_ERROR:
		s.writeAll(sc, req.GetUpdates(), results)
	case p4v1.WriteRequest_ROLLBACK_ON_ERROR:
		s.writeOrNone(sc, req.GetUpdates(), results, chunk)
	case p4v1.WriteRequest_DATAPLANE_ATOMIC:
		s.writeOrNone(sc, req.GetUpdates(), results, len(results))
	default:
		return failf(codes.InvalidArgument, "there is no atomicity %v", req.GetAtomicity())
	}
	return nil
}

// writeAll attempts every update.
func (s *Server) writeAll(sc *scope, updates []*p4v1.Update, results []error) {
	for from := 0; from < len(updates); from += chunk {
		s.dev.Exclusively(func() {
			for i := from; i < min(from+chunk, len(updates)); i++ {
				if results[i] == nil {
					results[i] = s.current.update(nil, sc, updates[i])
				}
			}
		})
	}
}

// writeOrNone applies updates until one fails; then it undoes all of them.
// Packets see no intermediate state of step consecutive updates.
func (s *Server) writeOrNone(sc *scope, updates []*p4v1.Update, results []error, step int) {
	j := &journal{}
	for from := 0; from < len(updates); from += step {
		failed := -1
		s.dev.Exclusively(func() {
			for i := from; i < min(from+step, len(updates)) && failed < 0; i++ {
				if results[i] == nil {
					results[i] = s.current.update(j, sc, updates[i])
				}
				if results[i] != nil {
					failed = i
					j.rollBack()
				}
			}
		})
		if failed >= 0 {
			abort(results, failed)
			return
		}
	}
}

// abort sets ABORTED as the result of all updates but the failed one.
func abort(results []error, failed int) {
	for i := range results {
		if i != failed {
			results[i] = failf(codes.Aborted, "not applied: update %d of the all-or-nothing batch failed", failed)
		}
	}
}

// rejectLarge rejects updates with entities that are too large.
func (s *Server) rejectLarge(updates []*p4v1.Update, results []error) {
	for i, u := range updates {
		if n := proto.Size(u.GetEntity()); n > s.limits.MaxEntity {
			results[i] = failf(codes.InvalidArgument, "the entity has %d bytes, want at most %d", n, s.limits.MaxEntity)
		}
	}
}

// update applies one update. If it fails, nothing has changed.
func (p *pipeline) update(j *journal, sc *scope, u *p4v1.Update) error {
	switch u.GetType() {
	case p4v1.Update_INSERT, p4v1.Update_MODIFY, p4v1.Update_DELETE:
	default:
		return failf(codes.InvalidArgument, "the update is of type %v, want INSERT, MODIFY or DELETE", u.GetType())
	}
	if err := sc.check(u.GetEntity()); err != nil {
		return err
	}
	switch x := u.GetEntity().GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		return p.writeTable(j, u.GetType(), x.TableEntry)
	case *p4v1.Entity_ActionProfileMember:
		return p.writeMember(j, u.GetType(), x.ActionProfileMember)
	case *p4v1.Entity_ActionProfileGroup:
		return p.writeGroup(j, u.GetType(), x.ActionProfileGroup)
	case *p4v1.Entity_CounterEntry:
		return p.writeCounter(j, u.GetType(), x.CounterEntry)
	case *p4v1.Entity_DirectCounterEntry:
		return p.writeDirectCounter(j, u.GetType(), x.DirectCounterEntry)
	case *p4v1.Entity_MeterEntry:
		return p.writeMeter(j, u.GetType(), x.MeterEntry)
	case *p4v1.Entity_DirectMeterEntry:
		return p.writeDirectMeter(j, u.GetType(), x.DirectMeterEntry)
	case *p4v1.Entity_RegisterEntry:
		return p.writeRegister(j, u.GetType(), x.RegisterEntry)
	case *p4v1.Entity_PacketReplicationEngineEntry:
		return p.writeReplication(j, u.GetType(), x.PacketReplicationEngineEntry)
	case *p4v1.Entity_ValueSetEntry:
		return p.writeValueSet(j, u.GetType(), x.ValueSetEntry)
	case *p4v1.Entity_DigestEntry:
		return p.writeDigest(j, u.GetType(), x.DigestEntry)
	case *p4v1.Entity_ExternEntry:
		return failf(codes.Unimplemented, "this target supports only externs with entities of their own")
	}
	return failf(codes.InvalidArgument, "the update has no entity")
}

// check reports whether a role may write an entity.
func (s *scope) check(e *p4v1.Entity) error {
	if s == nil {
		return nil
	}
	ok := false
	switch x := e.GetEntity().(type) {
	case *p4v1.Entity_PacketReplicationEngineEntry:
		ok = s.replicates()
	default:
		ok = s.allows(entityID(x))
	}
	if !ok {
		return failf(codes.PermissionDenied, "the entity does not belong to the role")
	}
	return nil
}

// entityID returns the id of the P4Info object that an entity belongs to.
func entityID(e any) uint32 {
	switch x := e.(type) {
	case *p4v1.Entity_TableEntry:
		return x.TableEntry.GetTableId()
	case *p4v1.Entity_ActionProfileMember:
		return x.ActionProfileMember.GetActionProfileId()
	case *p4v1.Entity_ActionProfileGroup:
		return x.ActionProfileGroup.GetActionProfileId()
	case *p4v1.Entity_CounterEntry:
		return x.CounterEntry.GetCounterId()
	case *p4v1.Entity_DirectCounterEntry:
		return x.DirectCounterEntry.GetTableEntry().GetTableId()
	case *p4v1.Entity_MeterEntry:
		return x.MeterEntry.GetMeterId()
	case *p4v1.Entity_DirectMeterEntry:
		return x.DirectMeterEntry.GetTableEntry().GetTableId()
	case *p4v1.Entity_RegisterEntry:
		return x.RegisterEntry.GetRegisterId()
	case *p4v1.Entity_ValueSetEntry:
		return x.ValueSetEntry.GetValueSetId()
	case *p4v1.Entity_DigestEntry:
		return x.DigestEntry.GetDigestId()
	}
	return 0
}
