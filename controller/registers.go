package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// p4Registers accesses registers with P4Runtime, if the server supports that.
type p4Registers struct {
	link     *primary.Link
	index    *p4info.Index
	timeout  time.Duration
	election func() *p4v1.Uint128
}

// oneByOne is the largest number of cells that are requested individually instead
// of reading the whole register. A register by path has 16,384 cells, of which a
// network uses a few hundred.
const oneByOne = 512

// mostCells is the size limit for registers that are read. A switch reports its own program, so
// it could claim any size.
const mostCells = 1 << 24

// Read appends cells to dst.
func (r *p4Registers) Read(ctx context.Context, name string, from, to int, dst []uint64) ([]uint64, error) {
	info, err := r.find(name, from, to)
	if err != nil {
		return dst, err
	}
	if to-from > mostCells {
		return dst, fmt.Errorf("reading register %s: %d cells, more than the %d that are read at once", name, to-from, mostCells)
	}
	var ask []*p4v1.Entity
	if to-from > oneByOne {
		ask = []*p4v1.Entity{registerEntity(&p4v1.RegisterEntry{RegisterId: info.ID})}
	} else {
		for i := from; i < to; i++ {
			ask = append(ask, registerEntity(&p4v1.RegisterEntry{RegisterId: info.ID, Index: &p4v1.Index{Index: int64(i)}}))
		}
	}
	list, err := readEntities(ctx, r.link, r.timeout, info.Size, func(err error) error { return registerFault(err, "reading", name) }, ask...)
	if err != nil {
		return dst, err
	}
	values, seen := make([]uint64, to-from), 0
	for _, e := range list {
		cell := e.GetRegisterEntry()
		if i := int(cell.GetIndex().GetIndex()); cell.GetRegisterId() == info.ID && i >= from && i < to {
			values[i-from] = cellNumber(info, cell.GetData())
			seen++
		}
	}
	if seen != to-from {
		return dst, fmt.Errorf("reading register %s: %d of %d cells came", name, seen, to-from)
	}
	return append(dst, values...), nil
}

// Write sets cells.
func (r *p4Registers) Write(ctx context.Context, name string, from, to int, value uint64) error {
	info, err := r.find(name, from, to)
	if err != nil {
		return err
	}
	if r.election == nil {
		return fmt.Errorf("writing register %s: %w: only the primary controller may", name, target.ErrNotPrimary)
	}
	var list []*p4v1.Update
	for i := from; i < to; i++ {
		list = append(list, &p4v1.Update{Type: p4v1.Update_MODIFY, Entity: registerEntity(&p4v1.RegisterEntry{
			RegisterId: info.ID, Index: &p4v1.Index{Index: int64(i)},
			Data: cellData(info, value),
		})})
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	_, err = r.link.Client.Write(ctx, &p4v1.WriteRequest{DeviceId: r.link.Endpoint.Device, ElectionId: r.election(), Updates: list})
	return registerFault(err, "writing", name)
}

// Clock always fails, because P4Runtime has no clock.
func (r *p4Registers) Clock(context.Context) (time.Duration, error) { return 0, registers.ErrNoClock }

func (r *p4Registers) find(name string, from, to int) (*p4info.Register, error) {
	info := r.index.Registers[name]
	switch {
	case info == nil:
		return nil, fmt.Errorf("the program has no register %s", name)
	case from < 0 || from > to || to > info.Size:
		return nil, fmt.Errorf("register %s: cells %d to %d are outside 0..%d", name, from, to-1, info.Size-1)
	}
	return info, nil
}

// cellNumber returns a cell as one number. For a struct, the first member has the highest bits.
func cellNumber(r *p4info.Register, d *p4v1.P4Data) uint64 {
	if len(r.Members) == 0 {
		return numberOf(d.GetBitstring())
	}
	var v uint64
	for i, m := range d.GetStruct().GetMembers() {
		if i < len(r.Members) {
			v = v<<r.Members[i] | numberOf(m.GetBitstring())
		}
	}
	return v
}

// cellData is the inverse of cellNumber.
func cellData(r *p4info.Register, v uint64) *p4v1.P4Data {
	if len(r.Members) == 0 {
		return &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: number(v)}}
	}
	members := make([]*p4v1.P4Data, len(r.Members))
	for i := len(members) - 1; i >= 0; i-- {
		part := v
		if r.Members[i] < 64 {
			part &= 1<<r.Members[i] - 1
		}
		members[i] = &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: number(part)}}
		v >>= r.Members[i]
	}
	return &p4v1.P4Data{Data: &p4v1.P4Data_Struct{Struct: &p4v1.P4StructLike{Members: members}}}
}

func registerEntity(e *p4v1.RegisterEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: e}}
}

// registerFault returns the error of a request. It wraps errors.ErrUnsupported if the server
// supports no registers.
func registerFault(err error, doing, name string) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	code, msg := s.Code(), s.Message()
	if _, first, _ := updateErrors(err); first != nil {
		code, msg = first.code, first.msg
	}
	switch code {
	case codes.Unimplemented:
		return fmt.Errorf("%s register %s over P4Runtime: %w by this switch", doing, name, errors.ErrUnsupported)
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return fmt.Errorf("%s register %s: the switch %w: %s", doing, name, target.ErrUnreachable, primary.LastPart(msg))
	case codes.PermissionDenied:
		return fmt.Errorf("%s register %s: %w: %s", doing, name, target.ErrNotPrimary, msg)
	}
	return fmt.Errorf("%s register %s: %w: %s (%v)", doing, name, target.ErrRefused, msg, code)
}

// switchRegisters accesses the registers of a switch over its current connection.
type switchRegisters struct {
	conn    *primary.Conn
	plan    *plan.Switch
	timeout time.Duration
}

func (r *switchRegisters) now() (registers.Access, error) {
	now := r.conn.State()
	if now.Link == nil {
		return nil, &plan.Error{Switch: r.plan.Name, Err: cmp.Or(now.Err, target.ErrUnreachable)}
	}
	index, err := r.plan.Pipeline.Index()
	if err != nil {
		return nil, err
	}
	x := &exchange{c: r.conn, link: now.Link, timeout: r.timeout, index: index}
	if reg := x.registers(); reg != nil {
		return reg, nil
	}
	return nil, &plan.Error{Switch: r.plan.Name, Err: fmt.Errorf("registers: %w by this target", errors.ErrUnsupported)}
}

// Read appends cells to dst.
func (r *switchRegisters) Read(ctx context.Context, name string, from, to int, dst []uint64) ([]uint64, error) {
	reg, err := r.now()
	if err != nil {
		return dst, err
	}
	return reg.Read(ctx, name, from, to, dst)
}

// Write sets cells.
func (r *switchRegisters) Write(ctx context.Context, name string, from, to int, value uint64) error {
	reg, err := r.now()
	if err != nil {
		return err
	}
	return reg.Write(ctx, name, from, to, value)
}

// Clock returns the clock of the switch's timestamps.
func (r *switchRegisters) Clock(ctx context.Context) (time.Duration, error) {
	reg, err := r.now()
	if err != nil {
		return 0, err
	}
	return reg.Clock(ctx)
}
