package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/server/bfrt"
)

// A chipRig is a switch with four pipes that serves BfRt on loopback, with a
// client that names the program in each request.
type chipRig struct {
	rig
	client wire.Client
	schema *bfrt.Schema
}

const chipName = "bench"

func newChipRig(ctx context.Context) (r *chipRig, err error) {
	program, err := p4.Compile(benchSource, "bench_chip.p4", p4.Options{Arch: bmv2.TNA})
	if err != nil {
		return nil, err
	}
	if err := program.DescribeBfRt(); err != nil {
		return nil, err
	}
	r = &chipRig{rig: rig{ctx: ctx}, schema: program.Schema}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if err := r.load(); err != nil {
		return nil, err
	}
	s, err := server.New(r.dev, server.Options{Arch: bmv2.TNA})
	if err != nil {
		return nil, err
	}
	r.server = s
	if err := s.Load(server.Program{Name: chipName, Schema: program.Schema.JSON(), Binary: program.JSON()}); err != nil {
		return nil, err
	}
	err = r.connect(grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)))
	r.client = wire.Client{Conn: r.conn}
	return r, err
}

// table returns a table of the program.
func (r *chipRig) table(name string) *bfrt.Table { return r.schema.Table("pipe.BenchIngress." + name) }

var allPipes = &wire.TargetDevice{PipeId: wire.AllPipes, Direction: wire.AllDirections, PrsrId: wire.AllParsers}

// entries returns updates of n entries of the exact table.
func (r *chipRig) entries(kind wire.Update_Type, n int) []*wire.Update {
	t := r.table("dmac")
	data := &wire.TableData{}
	for _, a := range *t.ActionSpecs {
		if strings.HasSuffix(a.Name, ".send") {
			data.ActionId = a.ID
			data.Fields = []*wire.DataField{{FieldId: a.Data[0].ID, Value: &wire.DataField_Stream{Stream: []byte{0, 7}}}}
		}
	}
	var list []*wire.Update
	for i := range n {
		mac := binary.BigEndian.AppendUint64(nil, uint64(i))[2:]
		e := &wire.TableEntry{TableId: t.ID, Data: data, Value: &wire.TableEntry_Key{Key: &wire.TableKey{Fields: []*wire.KeyField{
			{FieldId: t.Key[0].ID, MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: mac}}},
		}}}}
		if kind == wire.Update_DELETE {
			e.Data = nil
		}
		list = append(list, &wire.Update{Type: kind, Entity: &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}}})
	}
	return list
}

// read reads all entries of a table and checks their number.
func (r *chipRig) read(to *wire.TargetDevice, t *bfrt.Table, want int) error {
	stream, err := r.client.Read(r.ctx, &wire.ReadRequest{Target: to, P4Name: chipName, Entities: []*wire.Entity{
		{Entity: &wire.Entity_TableEntry{TableEntry: &wire.TableEntry{TableId: t.ID, TableFlags: &wire.TableFlags{FromHw: true}}}},
	}})
	if err != nil {
		return err
	}
	return drain(stream.Recv, want)
}

// benchBfRt measures BfRt: changes to a table in all pipes, and reads of a
// register.
func benchBfRt(ctx context.Context, runs int) ([]Measurement, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := newChipRig(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting a switch for BfRt: %w", err)
	}
	defer r.close()
	in, out := r.entries(wire.Update_INSERT, writeBatch), r.entries(wire.Update_DELETE, writeBatch)
	spent, how, err := timed(ctx, runs, time.Second, func() error {
		for range writeBatches / 2 {
			for _, list := range [][]*wire.Update{in, out} {
				if _, err := r.client.Write(ctx, &wire.WriteRequest{Target: allPipes, P4Name: chipName, Updates: list}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("measuring BfRt: %w", err)
	}
	list := []Measurement{{"bfrt.writes", writeBatch * writeBatches / spent.Seconds(), "1/s",
		"insert and delete exact entries in four pipes, 100 per request: " + how}}
	pairs := r.table("pairs")
	for _, c := range []struct {
		name, about string
		pipe        uint32
	}{{"bfrt.register", "one pipe", 0}, {"bfrt.register-4", "each of four pipes", wire.AllPipes}} {
		to := &wire.TargetDevice{PipeId: c.pipe, Direction: wire.AllDirections, PrsrId: wire.AllParsers}
		spent, how, err := timed(ctx, runs, time.Second, func() error { return r.read(to, pairs, int(pairs.Size)) })
		if err != nil {
			return nil, fmt.Errorf("measuring BfRt: %w", err)
		}
		list = append(list, Measurement{c.name, milliseconds(spent), "ms", "read 65,536 pairs of a register from " + c.about + ": " + how})
	}
	return list, nil
}
