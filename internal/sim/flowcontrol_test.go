package sim_test

import (
	"encoding/hex"
	"os"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/sim"
)

// A T2NA program pauses and resumes a queue of a simulated port, from ingress and from
// egress. Paused packets wait apart, and leave in their order after the resume.
func TestFlowControl(t *testing.T) {
	const dir = "../p4/testdata/tofino/"
	frame, err := os.ReadFile(dir + "frame.p4")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile(dir + "flow_control.txtar")
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{"frame.p4": {Data: frame}, "program.p4": {Data: archive.Files[0].Data}}
	out, err := p4.Compile(fsys, "program.p4", p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Ports 8 and 9 of the leaf lead to the host and to the spine.
	topo := plan.DevicePorts(leafSpine(t, fabric.LeafSpine{Leaves: 1, Spines: 1, Hosts: 1}), "t2na")
	n, err := sim.New(topo, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"l1", "s1"} {
		sw, err := dataplane.New(out.Config, dataplane.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n.Switch(name).Load(sw)
	}
	var sent []string
	n.Tap(func(at *sim.Port, head []byte, _ int) {
		if at.Switch() == "l1" && at.Number == 9 {
			sent = append(sent, hex.EncodeToString(head[6:7]))
		}
	})
	leaf := n.Switch("l1")
	packets := []string{
		"0103 82098001 a2", // pauses queue 3 at ingress, and waits in it
		"0003 00000000 a3",
		"0000 00000000 a4",
		"0200 82098000 a5", // resumes it at egress
		"0203 82098001 a6", // pauses it at egress
		"0003 00000000 a7",
		"0000 00000000 a8",
		"0100 82098000 a9", // resumes it at ingress
		"0103 82098001 aa", // pauses it for ever
	}
	for i, p := range packets {
		b, err := hex.DecodeString(p[:4] + p[5:13] + p[14:])
		if err != nil {
			t.Fatal(err)
		}
		n.At(time.Duration(i)*time.Millisecond, func() { leaf.PacketOut(b) })
	}
	if err := n.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a4", "a5", "a2", "a3", "a6", "a8", "a7", "a9"}; !slices.Equal(sent, want) {
		t.Errorf("port 9 sends %v, want %v", sent, want)
	}
	if got := n.InFlight().Packets; got != 1 {
		t.Errorf("%d packets are in flight, want the one in the paused queue", got)
	}
}
