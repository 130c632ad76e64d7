package embedded_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// TestWires: packets pass between hosts in real time through all switches, one of them
// restarted, and none passes a link that is down.
func TestWires(t *testing.T) {
	topology := preset(t, "qall")
	target := newTarget(t, embedded.Options{Memory: true})
	c := running(t, planFor(t, "letflow", topology), target, controller.DeployOptions{})
	exchangePackets(t, topology, target)

	if err := target.Restart(t.Context(), "l1"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Deploy(testContext(t)); err != nil {
		t.Fatal(err)
	}
	exchangePackets(t, topology, target)

	broken := topology.Fail(33, 34, 35) // one way is left between the leaves
	if err := c.SetPlan(testContext(t), planFor(t, "letflow", broken)); err != nil {
		t.Fatal(err)
	}
	// Packets on these links are lost.
	if _, err := c.Deploy(testContext(t)); err != nil {
		t.Fatal(err)
	}
	exchangePackets(t, broken, target)
}

// exchangePackets sends a flow between each host of one leaf and one of the
// other, and waits for it.
func exchangePackets(t *testing.T, topology *fabric.Topology, target *embedded.Target) {
	t.Helper()
	half := len(topology.Hosts) / 2
	for i := range half {
		from, to := &topology.Hosts[i], &topology.Hosts[half+i]
		frame := tcpFrame(from, to, uint16(5000+i))
		target.Host(from.Name).Send(frame)
		got := make(chan [][]byte, 1)
		go func() { got <- target.Host(to.Name).Receive() }()
		select {
		case list := <-got:
			if len(list) != 1 || !bytes.Equal(list[0][34:], frame[34:]) || !bytes.Equal(list[0][:6], to.MAC[:]) {
				t.Fatalf("%s to %s: %x arrives", from.Name, to.Name, list)
			}
		case <-time.After(patience):
			t.Fatalf("%s to %s: nothing arrives", from.Name, to.Name)
		}
	}
}
