package main

import (
	"testing"

	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/ui/live"
)

// TestQuantitiesOfPorts compares the names of port counters in packages live
// and inspect.
func TestQuantitiesOfPorts(t *testing.T) {
	for counted, shown := range map[string]string{
		inspect.InPackets: live.PortInPackets, inspect.OutPackets: live.PortOutPackets,
		inspect.InBytes: live.PortInBytes, inspect.OutBytes: live.PortOutBytes,
		inspect.InRate: live.PortInRate, inspect.OutRate: live.PortOutRate,
		inspect.Load: live.PortLoad, inspect.Queued: live.PortQueue, inspect.QueueFill: live.PortFill,
		inspect.Drops: live.PortDrops, inspect.Copies: live.PortCopies, inspect.LinkDown: live.PortDown, inspect.Carried: live.PathCarried,
	} {
		if counted != shown {
			t.Errorf("%q is counted and %q shown", counted, shown)
		}
	}
}
