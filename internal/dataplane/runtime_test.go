package dataplane

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/cell"
)

// send processes the packet {what, member, flow} with the program misc and
// returns the port and the bytes of the packet that leaves, or -1.
func send(t *testing.T, e *Engine, now time.Duration, what, member byte, flow uint16) (int, []byte) {
	t.Helper()
	out := e.Process(3, []byte{what, member, byte(flow >> 8), byte(flow)}, now)
	switch len(out) {
	case 0:
		return -1, nil
	case 1:
		return int(out[0].Port), bytes.Clone(out[0].Data)
	}
	t.Fatalf("%d packets left", len(out))
	return 0, nil
}

// members returns members of a value set without masks.
func members(values ...byte) (list []SetMember) {
	for _, v := range values {
		list = append(list, SetMember{Value: []byte{v}})
	}
	return list
}

func misc(t *testing.T, o Options) (*Engine, *Switch) {
	s := load(t, "misc", o)
	must(t, s.ValueSets().Set("P.known", members(1, 2, 3, 4)))
	return NewEngine(s), s
}

func wantPort(t *testing.T, e *Engine, what, member byte, flow uint16, want int) {
	t.Helper()
	if got, _ := send(t, e, time.Second, what, member, flow); got != want {
		t.Errorf("packet %d %d %d left at port %d, want %d", what, member, flow, got, want)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestSelectorPicksByHandleOrder(t *testing.T) {
	e, s := misc(t, Options{})
	var members []Handle
	for port := range uint64(4) {
		h, err := s.Profiles().AddMember("I.sel", ActionCall{Name: "I.out_port", Params: [][]byte{be(port+10, 2)}})
		must(t, err)
		members = append(members, h)
	}
	g, err := s.Profiles().AddGroup("I.sel")
	must(t, err)
	entry := Entry{Match: []Match{{Value: []byte{1}}}, Target: Target{Kind: TargetGroup, Index: g}}
	_, err = s.Tables().Add("I.paths", entry)
	wantErr(t, err, ErrEmptyGroup)
	// The order of joining does not matter.
	for _, i := range []int{2, 0, 3} {
		must(t, s.Profiles().AddToGroup("I.sel", g, members[i]))
	}
	wantErr(t, s.Profiles().AddToGroup("I.sel", g, members[0]), ErrMemberInGroup)
	h, err := s.Tables().Add("I.paths", entry)
	must(t, err)
	// The hash is the identity of the flow.
	for flow, want := range []int{10, 12, 13, 10} {
		wantPort(t, e, 1, 0, uint16(flow), want)
	}
	wantErr(t, s.Profiles().DeleteMember("I.sel", members[3]), ErrStillUsed)
	wantErr(t, s.Profiles().DeleteGroup("I.sel", g), ErrStillUsed)
	must(t, s.Profiles().RemoveFromGroup("I.sel", g, members[0]))
	wantErr(t, s.Profiles().RemoveFromGroup("I.sel", g, members[0]), ErrNotInGroup)
	wantPort(t, e, 1, 0, 0, 12)
	must(t, s.Profiles().ModifyMember("I.sel", members[2], ActionCall{Name: "I.drop"}))
	wantPort(t, e, 1, 0, 0, -1)
	must(t, s.Tables().Modify("I.paths", h, Target{Kind: TargetMember, Index: members[1]}))
	wantPort(t, e, 1, 0, 0, 11)
	must(t, s.Profiles().DeleteGroup("I.sel", g))
	must(t, s.Profiles().DeleteMember("I.sel", members[3]))
	list, err := s.Profiles().Members("I.sel")
	must(t, err)
	if len(list) != 3 || list[1].Action.Name != "I.out_port" || !bytes.Equal(list[1].Action.Params[0], be(11, 2)) {
		t.Errorf("members: %v", list)
	}
}

func TestEmptyGroupForwardsAsBefore(t *testing.T) {
	e, s := misc(t, Options{})
	m, err := s.Profiles().AddMember("I.sel", ActionCall{Name: "I.drop"})
	must(t, err)
	g, err := s.Profiles().AddGroup("I.sel")
	must(t, err)
	must(t, s.Profiles().AddToGroup("I.sel", g, m))
	_, err = s.Tables().Add("I.paths", Entry{Match: []Match{{Value: []byte{1}}}, Target: Target{Kind: TargetGroup, Index: g}})
	must(t, err)
	must(t, s.Profiles().RemoveFromGroup("I.sel", g, m))
	wantPort(t, e, 1, 0, 0, 0) // egress_spec was never set
}

func TestActionProfile(t *testing.T) {
	e, s := misc(t, Options{})
	_, err := s.Profiles().AddGroup("I.shared")
	wantErr(t, err, ErrNotSupported)
	_, err = s.Profiles().AddMember("I.shared", ActionCall{Name: "I.marked"})
	wantErr(t, err, ErrBadAction)
	_, err = s.Profiles().AddMember("I.shared", ActionCall{Name: "I.out_port"})
	wantErr(t, err, ErrBadParams)
	m, err := s.Profiles().AddMember("I.shared", ActionCall{Name: "I.out_port", Params: [][]byte{{4}}})
	must(t, err)
	_, err = s.Tables().Add("I.profile", Entry{Match: []Match{{Value: []byte{5}}}, Target: act("I.out_port", []byte{1})})
	wantErr(t, err, ErrBadTarget)
	_, err = s.Tables().Add("I.profile", Entry{Match: []Match{{Value: []byte{5}}}, Target: Target{Kind: TargetMember, Index: m}})
	must(t, err)
	wantPort(t, e, 2, 5, 0, 4)
	wantPort(t, e, 2, 6, 0, 0)
	must(t, s.Tables().SetDefault("I.profile", Target{Kind: TargetMember, Index: m}))
	wantPort(t, e, 2, 6, 0, 4)
	must(t, s.Tables().Clear("I.profile", false))
	wantErr(t, s.Profiles().DeleteMember("I.shared", m), ErrStillUsed)
	must(t, s.Tables().ResetDefault("I.profile"))
	must(t, s.Profiles().DeleteMember("I.shared", m))
}

func TestTableErrors(t *testing.T) {
	_, s := misc(t, Options{})
	add := func(value, mask uint64, priority int) (Handle, error) {
		return s.Tables().Add("I.direct", Entry{
			Match: []Match{{Value: be(value, 2), Mask: be(mask, 2)}}, Priority: priority, Target: act("I.marked", be(1, 2)),
		})
	}
	first, err := add(0x1234, 0xff00, 7)
	must(t, err)
	_, err = add(0x1299, 0xff00, 7) // the same under the mask
	wantErr(t, err, ErrDuplicate)
	for p := range 3 {
		_, err = add(0x1234, 0xff00, p)
		must(t, err)
	}
	_, err = add(1, 1, 1)
	wantErr(t, err, ErrTableFull)
	must(t, s.Tables().Delete("I.direct", first))
	wantErr(t, s.Tables().Delete("I.direct", first), ErrBadHandle)
	if h, err := add(1, 1, 1); err != nil || h != first+1<<24 {
		t.Errorf("the handle after a deletion is %d (%v), want place %d in its second version", h, err, first)
	}
	wantErr(t, s.Tables().Delete("I.direct", first), ErrExpired)
	h, err := s.Tables().Find("I.direct", []Match{{Value: be(0x12ff, 2), Mask: be(0xff00, 2)}}, 2)
	if err != nil || h != 3 {
		t.Errorf("TableFind = %d, %v", h, err)
	}
	_, err = s.Tables().Add("I.fixed", Entry{Match: []Match{{Value: []byte{1}}}, Target: act("I.drop")})
	wantErr(t, err, ErrImmutable)
	wantErr(t, s.Tables().Delete("I.fixed", 0), ErrImmutable)
	wantErr(t, s.Tables().SetDefault("I.fixed", act("I.fixed_", be(1, 2))), ErrConstDefault)
	for _, bad := range [][]Match{nil, {{}, {}}, {{Value: be(0x10000, 3), Mask: be(1, 2)}}, {{Value: be(1, 2), Mask: be(0x10000, 3)}}} {
		_, err = s.Tables().Add("I.direct", Entry{Match: bad, Target: act("I.drop")})
		wantErr(t, err, ErrBadMatch)
	}
	if _, err := s.Tables().Add("I.nothing", Entry{}); err == nil {
		t.Error("an unknown table was accepted")
	}
}

// A refused change changes nothing.
func TestRefusedModifyKeepsEntry(t *testing.T) {
	e, s := misc(t, Options{})
	h, err := s.Tables().Add("I.direct", Entry{Match: []Match{{}}, Target: act("I.marked", be(6, 2))})
	must(t, err)
	wantErr(t, s.Tables().Modify("I.direct", h, act("I.marked")), ErrBadParams)
	wantErr(t, s.Tables().Modify("I.direct", h, act("I.marked", be(1<<9, 2))), ErrBadParams)
	wantPort(t, e, 3, 0, 9, 6)
	list, err := s.Tables().Entries("I.direct")
	must(t, err)
	if len(list) != 1 || list[0].Target.Action.Name != "I.marked" || !bytes.Equal(list[0].Target.Action.Params[0], be(6, 2)) {
		t.Errorf("entries: %+v", list)
	}
}

func TestPriorityAndTies(t *testing.T) {
	e, s := misc(t, Options{})
	add := func(port uint64, value, mask uint64, priority int) Handle {
		h, err := s.Tables().Add("I.direct", Entry{
			Match: []Match{{Value: be(value, 2), Mask: be(mask, 2)}}, Priority: priority, Target: act("I.marked", be(port, 2)),
		})
		must(t, err)
		return h
	}
	low := add(1, 0, 0, 9)
	high := add(2, 0x1200, 0xff00, 3)
	add(3, 0x0034, 0x00ff, 3)
	wantPort(t, e, 3, 0, 0x1234, 2) // the lower handle
	must(t, s.Tables().Delete("I.direct", high))
	wantPort(t, e, 3, 0, 0x1234, 3)
	wantPort(t, e, 3, 0, 0x1235, 1)
	must(t, s.Tables().Delete("I.direct", low))
	wantPort(t, e, 3, 0, 0x1235, 0)
}

func TestCounters(t *testing.T) {
	e, s := misc(t, Options{})
	h, err := s.Tables().Add("I.direct", Entry{Match: []Match{{Value: be(5, 2), Mask: be(0xffff, 2)}}, Target: act("I.marked", be(1, 2))})
	must(t, err)
	for _, flow := range []uint16{5, 6, 5} {
		send(t, e, time.Second, 3, 0, flow)
	}
	if c, err := s.Counters().Read("I.hits", int(h)); err != nil || c != (Count{Packets: 2, Bytes: 8}) {
		t.Errorf("direct counter %+v, %v", c, err)
	}
	if c, err := s.Counters().Read("I.per_kind", 3); err != nil || c != (Count{Packets: 3, Bytes: 12}) {
		t.Errorf("counter %+v, %v", c, err)
	}
	must(t, s.Counters().Write("I.per_kind", 3, Count{Packets: 7, Bytes: 7}))
	all, err := s.Counters().ReadAll("I.per_kind")
	must(t, err)
	if len(all) != 8 || all[3] != (Count{Packets: 7, Bytes: 7}) {
		t.Errorf("counters %v", all)
	}
	if _, err := s.Counters().Read("I.per_kind", 8); err == nil {
		t.Error("a cell out of range was read")
	}
	if _, err := s.Counters().Read("I.hits", 1); !errors.Is(err, ErrBadHandle) {
		t.Errorf("counter of no entry: %v", err)
	}
}

func TestMeterColours(t *testing.T) {
	e, s := misc(t, Options{})
	must(t, s.ValueSets().Set("P.known", members(6, 3)))
	wantErr(t, s.Meters().Set("I.limit", 2, []MeterRate{{PerMicrosecond: 1, Burst: 1}}), cell.ErrRates)
	wantErr(t, s.Meters().Set("I.limit", 2, []MeterRate{{PerMicrosecond: 2, Burst: 1}, {PerMicrosecond: 1, Burst: 1}}), cell.ErrRates)
	// Committed rate: one packet per second, burst of 2. Peak rate: two, burst
	// of 4.
	must(t, s.Meters().Set("I.limit", 2, []MeterRate{{PerMicrosecond: 1e-6, Burst: 2}, {PerMicrosecond: 2e-6, Burst: 4}}))
	for i, c := range []struct {
		at   time.Duration
		want byte
	}{{0, 0}, {0, 0}, {0, 1}, {0, 1}, {0, 2}, {time.Second, 0}, {time.Second, 1}, {time.Second, 2}} {
		_, data := send(t, e, c.at, 6, 2, 0)
		if data[1] != c.want {
			t.Errorf("packet %d at %v is %d, want %d", i, c.at, data[1], c.want)
		}
	}
	if rates, _ := s.Meters().Rates("I.limit", 2); !slices.Equal(rates, []MeterRate{{PerMicrosecond: 1e-6, Burst: 2}, {PerMicrosecond: 2e-6, Burst: 4}}) {
		t.Errorf("rates %v", rates)
	}
	if c, err := s.Meters().Counts("I.limit", 2); err != nil || c[0].Packets != 3 || c[1].Packets != 3 || c[2].Packets != 2 {
		t.Errorf("counted %v, %v", c, err)
	}
	must(t, s.Meters().Reset("I.limit", 2))
	if _, data := send(t, e, time.Second, 6, 2, 0); data[1] != 0 {
		t.Errorf("a meter without rates marks %d", data[1])
	}
	// Direct meters count bytes.
	h, err := s.Tables().Add("I.direct", Entry{Match: []Match{{}}, Target: act("I.marked", be(1, 2))})
	must(t, err)
	must(t, s.Meters().Set("I.entry_limit", int(h), []MeterRate{{PerMicrosecond: 0, Burst: 4}, {PerMicrosecond: 0, Burst: 8}}))
	for i, want := range []byte{0, 1, 2} {
		if _, data := send(t, e, time.Second, 3, 0, 1); data[1] != want {
			t.Errorf("direct meter, packet %d: %d, want %d", i, data[1], want)
		}
	}
}

// simple_switch has neither counter nor meter for misses, so a meter without
// rates does nothing.
func TestDefaultEntryCountsMisses(t *testing.T) {
	e, s := misc(t, Options{})
	must(t, s.ValueSets().Set("P.known", members(6, 3)))
	must(t, s.Tables().SetDefault("I.direct", act("I.marked", be(1, 2))))
	send(t, e, time.Second, 3, 0, 1)
	must(t, s.Meters().Set("I.entry_limit", int(DefaultEntry), []MeterRate{{PerMicrosecond: 0, Burst: 4}, {PerMicrosecond: 0, Burst: 8}}))
	for i, want := range []byte{0, 1, 2} {
		if _, data := send(t, e, time.Second, 3, 0, 1); data[1] != want {
			t.Errorf("packet %d: %d, want %d", i, data[1], want)
		}
	}
	if c, err := s.Tables().Counter("I.direct", DefaultEntry); err != nil || c.Packets != 4 {
		t.Errorf("counted %v, %v", c, err)
	}
	if c, err := s.Meters().Counts("I.entry_limit", int(DefaultEntry)); err != nil || c[0].Packets != 1 || c[1].Packets != 1 || c[2].Packets != 1 {
		t.Errorf("marked %v, %v", c, err)
	}
	for _, entry := range []int{int(DefaultEntry), 0} {
		if err := s.Meters().Set("I.entry_limit", entry, []MeterRate{{}}); err == nil || !strings.Contains(err.Error(), "meter I.entry_limit: ") {
			t.Errorf("one rate for entry %d: %v", entry, err)
		}
	}
}

func TestDigestLogAssert(t *testing.T) {
	var digests, lines []string
	e, s := misc(t, Options{
		Digest: func(d Digest) { digests = append(digests, fmt.Sprintf("%s %x", d.List, d.Data)) },
		Log:    func(l string) { lines = append(lines, l) },
	})
	must(t, s.ValueSets().Set("P.known", members(4, 5)))
	wantPort(t, e, 4, 0, 0xfabc, 1)
	wantPort(t, e, 5, 0, 1, 1)
	wantPort(t, e, 5, 0, 0, -1)
	if want := []string{"seen_t 040abc0003"}; !slices.Equal(digests, want) {
		t.Errorf("digests %q, want %q", digests, want)
	}
	if len(lines) != 2 || lines[0] != "flow 64188 of 4" || lines[1] != "misc.p4:66: assert failed: assert(h.h.flow != 0)" {
		t.Errorf("lines %q", lines)
	}
	if w, err := s.DigestWidths("seen_t"); err != nil || !slices.Equal(w, []int{8, 12, 9}) {
		t.Errorf("widths %v, %v", w, err)
	}
}

func TestIdleEntries(t *testing.T) {
	e, s := misc(t, Options{})
	h, err := s.Tables().Add("I.direct", Entry{Match: []Match{{}}, Target: act("I.marked", be(1, 2))})
	must(t, err)
	must(t, s.Tables().SetIdleTimeout("I.direct", h, 2*time.Second, time.Second))
	idle := func(now time.Duration) int {
		list, _, err := s.Tables().IdleEntries("I.direct", now, 0, 1000)
		must(t, err)
		return len(list)
	}
	if idle(2999*time.Millisecond) != 0 || idle(3*time.Second) != 1 {
		t.Error("the entry does not age from the setting on")
	}
	send(t, e, 5*time.Second, 3, 0, 1)
	if idle(6*time.Second) != 0 || idle(7*time.Second) != 1 {
		t.Error("a hit does not renew the entry")
	}
	wantErr(t, s.Tables().SetIdleTimeout("I.fixed", 0, time.Second, 0), ErrNotSupported)
}

func TestValueSet(t *testing.T) {
	e, s := misc(t, Options{})
	wantPort(t, e, 9, 9, 0, -1)
	must(t, s.ValueSets().Set("P.known", members(9, 9)))
	wantPort(t, e, 9, 9, 0, 9)
	if m, _ := s.ValueSets().Get("P.known"); len(m) != 1 {
		t.Errorf("members %v", m)
	}
	must(t, s.ValueSets().Edit("P.known", func(list []SetMember) []SetMember {
		return append(list, SetMember{Value: []byte{0x21}, Mask: []byte{0xf0}}, SetMember{Value: []byte{0x2f}, Mask: []byte{0xf0}})
	}))
	wantPort(t, e, 0x25, 9, 0, 9)
	wantPort(t, e, 0x35, 9, 0, -1)
	if m, err := s.ValueSets().Get("P.known"); err != nil || fmt.Sprint(m) != "[{[9] []} {[32] [240]}]" {
		t.Errorf("members %v, %v", m, err)
	}
	if s.ValueSets().Set("P.known", []SetMember{{Value: []byte{1}, Mask: []byte{1, 0}}}) == nil {
		t.Error("a mask too wide was accepted")
	}
	if s.ValueSets().Set("P.known", make([]SetMember, 5)) == nil || s.ValueSets().Set("P.known", []SetMember{{Value: []byte{1, 0}}}) == nil {
		t.Error("too many or too wide members were accepted")
	}
}

func TestRegisters(t *testing.T) {
	s := load(t, "flowlet", Options{})
	must(t, s.Registers().Write("I.flow_time", 7, big.NewInt(0x1234567890abcdef)))
	v, err := s.Registers().Read("I.flow_time", 7)
	if err != nil || v.Int64() != 0x567890abcdef {
		t.Errorf("a register of 48 bits holds %x, %v", v, err)
	}
	must(t, s.Registers().WriteRange("I.flow_path", 10, 13, big.NewInt(9)))
	cells, err := s.Registers().Cells("I.flow_path", nil)
	must(t, err)
	if !slices.Equal(cells[9:14], []uint64{0, 9, 9, 9, 0}) {
		t.Errorf("cells %v", cells[9:14])
	}
	some, err := s.Registers().Range("I.flow_path", 9, 14, []uint64{5})
	must(t, err)
	if !slices.Equal(some, []uint64{5, 0, 9, 9, 9, 0}) {
		t.Errorf("some cells %v", some)
	}
	if _, err := s.Registers().Range("I.flow_path", 65530, 65537, nil); err == nil {
		t.Error("a range beyond the last cell was read")
	}
	for _, i := range []int{-1, 65536} {
		if s.Registers().Write("I.flow_path", i, v) == nil {
			t.Errorf("cell %d was written", i)
		}
	}
	must(t, s.Registers().Reset("I.flow_path"))
	if all, _ := s.Registers().ReadAll("I.flow_path"); len(all) != 65536 || all[10].Sign() != 0 {
		t.Error("reset left something")
	}
}

func TestSetGroup(t *testing.T) {
	s := load(t, "reflector", Options{})
	wantErr(t, s.Replication().SetGroup(0, nil), errGroupZero)
	want := []Replica{{5, 2}, {1, 2}, {9, 1}}
	must(t, s.Replication().SetGroup(3, []Replica{{7, 7}}))
	must(t, s.Replication().SetGroup(3, want))
	if got, err := s.Replication().Replicas(3); err != nil || !slices.Equal(got, want) {
		t.Errorf("replicas %v, %v", got, err)
	}
	n := s.Replication().CreateNode(1, []uint32{4, 2, 4}, nil)
	must(t, s.Replication().JoinGroup(3, n))
	if s.Replication().JoinGroup(3, n) == nil {
		t.Error("a node joined twice")
	}
	got, _ := s.Replication().Replicas(3)
	if !slices.Equal(got, append(want, Replica{1, 2}, Replica{1, 4})) {
		t.Errorf("replicas %v", got)
	}
	must(t, s.Replication().DeleteNode(n))
	must(t, s.Replication().DeleteGroup(3))
	if len(s.Replication().Groups()) != 0 {
		t.Error("a group is left")
	}
}

// Packets and control plane run concurrently; run with -race.
func TestControlWhileForwarding(t *testing.T) {
	e := router(t)
	s := e.Switch()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		defer close(stop)
		packets := flows(64)
		for i := range 3000 {
			e.Process(0, packets[i%len(packets)], time.Duration(i))
		}
	})
	for w := range uint64(2) {
		wg.Go(func() {
			for i := uint64(0); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				h, err := s.Tables().Add("I.routes", Entry{
					Match:  []Match{{Value: be(0x0b000000+w<<16+i%200<<8, 4), PrefixLen: 24}},
					Target: act("I.route", be(1, 2), be(1, 6)),
				})
				if err == nil {
					err = s.Tables().Delete("I.routes", h)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if list, err := s.Tables().Entries("I.routes"); err != nil || len(list) != 1000 {
		t.Errorf("%d entries left, want 1000 (%v)", len(list), err)
	}
}
