// Command goclient tests a switch with antoninbas's P4Runtime client. The
// switch must not run a program yet. The caller sends one packet for each line
// that goclient prints.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/antoninbas/p4runtime-go-client/pkg/client"
)

func main() {
	if len(os.Args) != 4 {
		fail("usage: goclient ADDR PROGRAM.json P4INFO.txtpb")
	}
	conn, err := grpc.Dial(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	check("dialling", err)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	d := &driver{
		ctx: ctx, messages: make(chan *p4v1.StreamMessageResponse, 100),
		Client: client.NewClient(p4v1.NewP4RuntimeClient(conn), 7, &p4v1.Uint128{Low: 1}),
	}
	primary, stop, ended := make(chan bool, 1), make(chan struct{}), make(chan error, 1)
	go func() { ended <- d.Run(stop, primary, d.messages) }()
	if !<-primary {
		fail("not primary")
	}
	_, err = d.SetFwdPipe(ctx, os.Args[2], os.Args[3], 42)
	check("pushing the program", err)
	config, err := d.GetFwdPipe(ctx, client.GetFwdPipeAll)
	check("reading the program", err)
	if config.Cookie != 42 || len(config.P4Info.Tables) == 0 {
		fail("the config is not the one that was pushed")
	}
	d.tables()
	d.profiles()
	d.arrays()
	d.streams()
	close(stop)
	check("running the stream", <-ended)
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func check(what string, err error) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

type driver struct {
	*client.Client
	ctx      context.Context
	messages chan *p4v1.StreamMessageResponse
}

func (d *driver) forward(port byte) *p4v1.TableAction {
	return d.NewTableActionDirect("AllIngress.forward", [][]byte{{port}})
}

func (d *driver) tables() {
	key := map[string]client.MatchInterface{
		"hdr.ethernet.dst": &client.ExactMatch{Value: []byte{0, 0, 0, 0, 0, 1}},
		"std.ingress_port": &client.ExactMatch{Value: []byte{0, 3}},
	}
	entry := d.NewTableEntry("AllIngress.macs", key, d.forward(2), nil)
	check("inserting", d.InsertTableEntry(d.ctx, entry))
	if d.InsertTableEntry(d.ctx, entry) == nil {
		fail("an entry is inserted twice")
	}
	entry.Action = d.forward(4)
	check("modifying", d.ModifyTableEntry(d.ctx, entry))
	list, err := d.ReadTableEntryWildcard(d.ctx, "AllIngress.macs")
	check("reading", err)
	if len(list) != 1 || !bytes.Equal(list[0].Action.GetAction().Params[0].Value, []byte{4}) {
		fail("read back %v", list)
	}
	route := d.NewTableEntry("AllIngress.routes", map[string]client.MatchInterface{
		"hdr.ipv4.dst": &client.LpmMatch{Value: []byte{10, 1, 2, 3}, PLen: 16},
	}, d.NewTableActionDirect("AllIngress.metered", [][]byte{{1}}), nil)
	check("inserting a route", d.InsertTableEntry(d.ctx, route))
	acl := d.NewTableEntry("AllIngress.acl", map[string]client.MatchInterface{
		"hdr.ipv4.src":      &client.TernaryMatch{Value: []byte{10, 0, 0, 1}, Mask: []byte{255, 0, 0, 0}},
		"hdr.ipv4.length":   &client.RangeMatch{Low: []byte{0, 64}, High: []byte{1, 0}},
		"hdr.ipv4.protocol": &client.OptionalMatch{Value: []byte{6}},
		"hdr.ipv4.ttl":      &client.ExactMatch{Value: []byte{64}},
	}, d.NewTableActionDirect("AllIngress.drop", nil), &client.TableEntryOptions{Priority: 10})
	check("inserting an ACL entry", d.InsertTableEntry(d.ctx, acl))
	check("deleting an ACL entry", d.DeleteTableEntry(d.ctx, acl))
	def := d.NewTableEntry("AllIngress.keyless", nil, d.NewTableActionDirect("AllIngress.mark", [][]byte{{1, 2}}), nil)
	check("setting a default", d.ModifyTableEntry(d.ctx, def))
}

func (d *driver) profiles() {
	check("inserting a member", d.InsertActionProfileMember(d.ctx, d.NewActionProfileMember("AllIngress.plain", 1, "AllIngress.forward", [][]byte{{1}})))
	entry := d.NewTableEntry("AllIngress.members", map[string]client.MatchInterface{
		"hdr.ipv4.protocol": &client.ExactMatch{Value: []byte{6}},
	}, d.NewTableActionMember(1), nil)
	check("inserting an entry with a member", d.InsertTableEntry(d.ctx, entry))
	set := d.NewActionProfileActionSet().
		AddAction("AllIngress.forward", [][]byte{{1}}, 2, client.NewPortFromInt(3)).
		AddAction("AllIngress.forward", [][]byte{{2}}, 1, client.NewPortFromInt(3))
	oneShot := d.NewTableEntry("AllIngress.groups", map[string]client.MatchInterface{
		"hdr.ipv4.tos": &client.ExactMatch{Value: []byte{1}},
	}, set.TableAction(), nil)
	check("inserting a one-shot entry", d.InsertTableEntry(d.ctx, oneShot))
	check("deleting a one-shot entry", d.DeleteTableEntry(d.ctx, oneShot))
}

func (d *driver) arrays() {
	want := &p4v1.CounterData{PacketCount: 3, ByteCount: 4}
	check("writing a counter", d.ModifyCounterEntry(d.ctx, "AllIngress.seen", 2, want))
	got, err := d.ReadCounterEntry(d.ctx, "AllIngress.seen", 2)
	check("reading a counter", err)
	if got.PacketCount != 3 || got.ByteCount != 4 {
		fail("the counter has %v", got)
	}
	all, err := d.ReadCounterEntryWildcard(d.ctx, "AllIngress.seen")
	check("reading all counters", err)
	if len(all) != 8 {
		fail("there are %d counters", len(all))
	}
	meters, err := d.ReadMeterEntryWildcard(d.ctx, "AllIngress.limit")
	check("reading meters", err)
	if len(meters) != 4 {
		fail("there are %d meters", len(meters))
	}
	check("inserting a group", d.InsertMulticastGroup(d.ctx, 1, []uint32{1, 2}))
	check("deleting a group", d.DeleteMulticastGroup(d.ctx, 1))
	check("inserting a session", d.InsertCloneSession(d.ctx, 5, []uint32{2}, client.DefaultCloneSessionOptions))
	check("deleting a session", d.DeleteCloneSession(d.ctx, 5))
}

// streams makes the switch send a digest and a packet. The caller sends a
// packet from a new source and one to the CPU port when it reads the
// corresponding lines.
func (d *driver) streams() {
	check("enabling a digest", d.EnableDigest(d.ctx, "learned_t", &p4v1.DigestEntry_Config{MaxListSize: 1, AckTimeoutNs: 1e9}))
	fmt.Println("digest")
	list := d.next().GetDigest()
	if len(list.GetData()) != 1 {
		fail("got digest %v", list)
	}
	check("acknowledging", d.AckDigestList(d.ctx, list))
	check("disabling a digest", d.DisableDigest(d.ctx, "learned_t"))

	entry := d.NewTableEntry("AllIngress.macs", map[string]client.MatchInterface{
		"hdr.ethernet.dst": &client.ExactMatch{Value: []byte{0, 0, 0, 0, 0, 9}},
		"std.ingress_port": &client.ExactMatch{Value: []byte{3}},
	}, d.NewTableActionDirect("AllIngress.punt", nil), nil)
	check("inserting", d.InsertTableEntry(d.ctx, entry))
	fmt.Println("packet")
	in := d.next().GetPacket()
	if len(in.GetMetadata()) != 3 || !bytes.Equal(in.GetMetadata()[0].Value, []byte{3}) {
		fail("got packet %v", in)
	}
	check("sending a packet", d.SendPacketOut(d.ctx, &p4v1.PacketOut{Payload: in.Payload, Metadata: []*p4v1.PacketMetadata{
		{MetadataId: 1, Value: []byte{3}}, {MetadataId: 2, Value: []byte{0}},
	}}))
	fmt.Println("sent")
	var line string
	fmt.Scanln(&line) // wait until the packet has returned
}

func (d *driver) next() *p4v1.StreamMessageResponse {
	select {
	case m := <-d.messages:
		return m
	case <-d.ctx.Done():
		fail("nothing comes")
		return nil
	}
}
