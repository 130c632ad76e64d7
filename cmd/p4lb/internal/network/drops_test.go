package network

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// A dropTarget has switches with given counters of ports.
type dropTarget struct {
	target.Target
	switches map[string]registers.Access
}

func (d *dropTarget) Endpoint(name string) (target.Endpoint, error) {
	e, ok := d.switches[name]
	if !ok {
		return target.Endpoint{}, errors.New("no such switch")
	}
	return target.Endpoint{Registers: e}, nil
}

type meteredSwitch struct {
	registers.Access
	counts []bmv2.PortCounts
	err    error
}

func (m *meteredSwitch) PortCounts(context.Context) ([]bmv2.PortCounts, error) {
	return m.counts, m.err
}

type busySwitch struct {
	meteredSwitch
	empty bool
	why   error
}

func (b *busySwitch) QueuesEmpty(context.Context) (bool, error) { return b.empty, b.why }

// drops adds up the ports of a switch and names the main reason, for at most four switches.
func TestDrops(t *testing.T) {
	var noEntry, ttl, copies bmv2.PortCounts
	noEntry.Drops[bmv2.DropNoEntry], ttl.Drops[bmv2.DropTTL], copies.Drops[bmv2.EndCopy] = 3, 5, 9
	all := map[string]registers.Access{
		"l1":    &meteredSwitch{counts: []bmv2.PortCounts{noEntry, ttl, noEntry}},
		"l2":    &busySwitch{meteredSwitch: meteredSwitch{counts: []bmv2.PortCounts{ttl}}},
		"empty": &busySwitch{meteredSwitch: meteredSwitch{counts: []bmv2.PortCounts{ttl}}, empty: true},
		"mute":  &busySwitch{meteredSwitch: meteredSwitch{counts: []bmv2.PortCounts{ttl}}, why: errors.New("closed")},
		"quiet": &meteredSwitch{counts: []bmv2.PortCounts{copies, {}}},
		"down":  &meteredSwitch{err: errors.New("closed")},
		"blind": nil,
	}
	dropped := func(names ...string) string {
		k := &keeper{target: &dropTarget{switches: all}, plan: &plan.Plan{}}
		for _, name := range names {
			k.plan.Switches = append(k.plan.Switches, &plan.Switch{Name: name})
		}
		return k.drops(t.Context())
	}
	const l1 = "l1 dropped 6 (no entry)"
	for i, row := range []struct{ got, want string }{
		{dropped("quiet", "down", "blind", "missing"), ""},
		{dropped("l1", "quiet", "l2"), l1 + ", packets circulate in l2"},
		{dropped("empty", "mute"), "empty dropped 5 (TTL used up), mute dropped 5 (TTL used up)"},
		{dropped("l1", "l1", "l1", "l1"), fmt.Sprintf("%s, %[1]s, %[1]s, %[1]s", l1)},
		{dropped("l1", "l1", "l1", "l1", "l2"), fmt.Sprintf("%s, %[1]s, %[1]s, %[1]s, …", l1)},
	} {
		if row.got != row.want {
			t.Errorf("row %d: %q, want %q", i, row.got, row.want)
		}
	}
}
