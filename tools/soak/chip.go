package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// A bfrtTarget is an attacked switch that serves BfRt.
type bfrtTarget struct {
	context.Context
	address string
	client  wire.Client
	ids     map[string]uint32
}

const besiegedChip = `#include <core.p4>
#include <tna.p4>
header h_t { bit<32> a; bit<32> b; }
struct H { h_t h; }
struct M {}
parser IP(packet_in p, out H h, out M m, out ingress_intrinsic_metadata_t i) {
    state start { p.extract(i); p.advance(PORT_METADATA_SIZE); p.extract(h.h); transition accept; }
}
control I(inout H h, inout M m, in ingress_intrinsic_metadata_t i, in ingress_intrinsic_metadata_from_parser_t f,
          inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t t) {
    Register<bit<32>, bit<32>>(262144) cells;
    RegisterAction<bit<32>, bit<32>, bit<32>>(cells) count = { void apply(inout bit<32> v, out bit<32> o) { v = v + 1; o = v; } };
    action forward(PortId_t port) { t.ucast_egress_port = port; }
    table routes { key = { h.h.a: exact; } actions = { forward; NoAction; } size = 262144; }
    apply { h.h.b = count.execute(h.h.b & 0x3ffff); routes.apply(); }
}
control ID(packet_out p, inout H h, in M m, in ingress_intrinsic_metadata_for_deparser_t d) { apply { p.emit(h); } }
parser EP(packet_in p, out H h, out M m, out egress_intrinsic_metadata_t e) { state start { p.extract(e); transition accept; } }
control E(inout H h, inout M m, in egress_intrinsic_metadata_t e, in egress_intrinsic_metadata_from_parser_t f,
          inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) { apply {} }
control ED(packet_out p, inout H h, in M m, in egress_intrinsic_metadata_for_deparser_t d) { apply { p.emit(h); } }
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
`

func (c *bfrtTarget) build(binary, dir string) (*exec.Cmd, error) {
	if err := compiled(binary, dir, besiegedChip, "--bfrt", "schema.json"); err != nil {
		return nil, err
	}
	address, err := freePort()
	if err != nil {
		return nil, err
	}
	return exec.Command(binary, "switch", "--bfrt", address, "--load", filepath.Join(dir, "x.p4")), nil
}

func (c *bfrtTarget) find(dir string, addresses []string) error {
	text, err := os.ReadFile(filepath.Join(dir, "schema.json"))
	if err != nil {
		return err
	}
	type named struct {
		Name    string
		ID      uint32
		Actions []struct {
			Name string
			ID   uint32
		} `json:"action_specs"`
	}
	var schema struct{ Tables []named }
	if err := json.Unmarshal(text, &schema); err != nil {
		return err
	}
	c.address, c.ids = addresses[0], map[string]uint32{}
	last := func(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
	for _, t := range schema.Tables {
		c.ids[last(t.Name)] = t.ID
		for _, a := range t.Actions {
			c.ids[last(a.Name)] = a.ID
		}
	}
	c.client, err = c.dial()
	return err
}

// dial returns a client with its own connection.
func (c *bfrtTarget) dial() (wire.Client, error) {
	conn, err := grpc.NewClient("passthrough:"+c.address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30), grpc.WaitForReady(true)))
	return wire.Client{Conn: conn}, err
}

// everywhere is the target device for all pipes.
var everywhere = &wire.TargetDevice{PipeId: 0xffff, Direction: 0xff, PrsrId: 0xff}

func (c *bfrtTarget) write(ctx context.Context, kind wire.Update_Type, keys ...uint32) error {
	req := &wire.WriteRequest{Target: everywhere, P4Name: "x"}
	for _, key := range keys {
		e := &wire.TableEntry{TableId: c.ids["routes"], Value: &wire.TableEntry_Key{Key: &wire.TableKey{Fields: []*wire.KeyField{
			{FieldId: 1, MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: binary.BigEndian.AppendUint32(nil, key)}}},
		}}}}
		if kind != wire.Update_DELETE {
			e.Data = &wire.TableData{ActionId: c.ids["forward"], Fields: []*wire.DataField{{FieldId: 1, Value: &wire.DataField_Stream{Stream: []byte{0, 2}}}}}
		}
		req.Updates = append(req.Updates, &wire.Update{Type: kind, Entity: &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}}})
	}
	_, err := c.client.Write(ctx, req)
	return err
}

func (c *bfrtTarget) open(entries int, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(c, patience)
	defer cancel()
	var keys []uint32
	for i := range uint32(entries) {
		if keys = append(keys, i); len(keys) == 10000 || int(i) == entries-1 {
			if err := c.write(ctx, wire.Update_INSERT, keys...); err != nil {
				return err
			}
			keys = nil
		}
	}
	return nil
}

func (c *bfrtTarget) change(ctx context.Context) error {
	if err := c.write(ctx, wire.Update_INSERT, 1<<31); err != nil {
		return err
	}
	return c.write(ctx, wire.Update_DELETE, 1<<31)
}

// whole returns a request for n copies of a table's content.
func (c *bfrtTarget) whole(table string, n int) *wire.ReadRequest {
	req := &wire.ReadRequest{Target: everywhere, P4Name: "x"}
	for range n {
		req.Entities = append(req.Entities, &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: &wire.TableEntry{TableId: c.ids[table]}}})
	}
	return req
}

// crowd runs n clients, each on its own connection, until the time is over.
func (c *bfrtTarget) crowd(n int, do func(wire.Client, uint32) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		client, err := c.dial()
		if err != nil {
			return err
		}
		all.Go(func() { errs[i] = do(client, uint32(i)+10) })
	}
	all.Wait()
	for _, err := range errs {
		switch status.Code(err) {
		case codes.OK, codes.DeadlineExceeded, codes.Canceled: // the time is over
		default:
			return err
		}
	}
	return nil
}

// chipSieges returns the attacks of BfRt clients.
func chipSieges() []siege {
	subscribe := func(id uint32) *wire.StreamMessageRequest {
		return &wire.StreamMessageRequest{ClientId: id, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{}}}
	}
	silent := func(table string, times int) func(*bfrtTarget) error {
		return func(c *bfrtTarget) error {
			return c.crowd(100, func(client wire.Client, _ uint32) error {
				_, err := client.Read(c, c.whole(table, times))
				<-c.Done()
				return err
			})
		}
	}
	return []siege{
		{name: "readers that receive nothing", chip: silent("routes", 100)},
		{name: "readers of registers that receive nothing", chip: silent("cells", 100)},
		{name: "readers that receive everything, endlessly", chip: func(c *bfrtTarget) error {
			return c.crowd(20, func(client wire.Client, _ uint32) error {
				for c.Err() == nil {
					stream, err := client.Read(c, c.whole("routes", 1))
					for err == nil {
						_, err = stream.Recv()
					}
				}
				return nil
			})
		}},
		{name: "silent streams", chip: func(c *bfrtTarget) error {
			return c.crowd(10, func(client wire.Client, _ uint32) error {
				for range 700 {
					if _, err := client.StreamChannel(c); err != nil {
						return err
					}
				}
				<-c.Done()
				return nil
			})
		}},
		{name: "endless subscriptions without receiver", chip: func(c *bfrtTarget) error {
			return c.crowd(100, func(client wire.Client, id uint32) error {
				stream, err := client.StreamChannel(c)
				for err == nil && c.Err() == nil {
					err = stream.Send(subscribe(id))
				}
				return nil
			})
		}},
		{name: "programs that are requested but not received", chip: func(c *bfrtTarget) error {
			return c.crowd(60, func(client wire.Client, _ uint32) error {
				var all sync.WaitGroup
				for range 50 {
					all.Go(func() { client.GetForwardingPipelineConfig(c, &wire.GetForwardingPipelineConfigRequest{}) })
				}
				all.Wait()
				<-c.Done()
				return nil
			})
		}},
	}
}
