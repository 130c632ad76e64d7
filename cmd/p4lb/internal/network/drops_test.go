package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

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
	until int // the queues are empty when they are checked for this time
	asked int
	why   error
}

func (b *busySwitch) QueuesEmpty(context.Context) (bool, error) {
	b.asked++
	return b.empty || b.asked == b.until, b.why
}

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

// TestSettle: deploy --once waits until the queues of each switch have been empty, but no longer than
// its limit, and not for switches that do not report it. Then it names the busy ones.
func TestSettle(t *testing.T) {
	slow, busy, mute := &busySwitch{until: 3}, &busySwitch{}, &busySwitch{why: errors.New("closed")}
	k := &keeper{target: &dropTarget{switches: map[string]registers.Access{"slow": slow, "busy": busy, "mute": mute, "blind": nil}}, plan: &plan.Plan{}}
	for _, name := range []string{"blind", "missing", "mute", "slow"} {
		k.plan.Switches = append(k.plan.Switches, &plan.Switch{Name: name})
	}
	if got := k.settle(t.Context(), time.Minute); len(got) > 0 || slow.asked != 3 || mute.asked != 1 {
		t.Errorf("busy: %v; checked the slow switch %d times and the mute one %d times, want 3 and 1", got, slow.asked, mute.asked)
	}
	k.plan.Switches[0].Name, slow.until = "busy", 5
	if got := k.settle(t.Context(), 0); !slices.Equal(got, []string{"busy", "slow"}) {
		t.Errorf("at the limit: busy: %v, want busy and slow", got)
	}
}
