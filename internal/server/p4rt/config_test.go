package p4rt

import (
	"runtime"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	verify    = p4v1.SetForwardingPipelineConfigRequest_VERIFY
	saveOnly  = p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE
	commitNew = p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT
	commitOld = p4v1.SetForwardingPipelineConfigRequest_COMMIT
	reconcile = p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT
)

func (r *rig) getConfig(typ p4v1.GetForwardingPipelineConfigRequest_ResponseType) *p4v1.ForwardingPipelineConfig {
	r.t.Helper()
	resp, err := r.client.GetForwardingPipelineConfig(r.context(), &p4v1.GetForwardingPipelineConfigRequest{DeviceId: testDevice, ResponseType: typ})
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.GetConfig()
}

func TestConfigActions(t *testing.T) {
	r := newRig(t, Options{})
	s := r.primary()
	config := testConfig(t)
	if c := r.getConfig(p4v1.GetForwardingPipelineConfigRequest_ALL); c != nil {
		t.Errorf("before any config there is %v", c)
	}
	s.must(s.configure(verify, config))
	if c := r.getConfig(p4v1.GetForwardingPipelineConfigRequest_ALL); c != nil {
		t.Errorf("after VERIFY there is a config")
	}
	for name, c := range map[string]struct {
		action configAction
		config *p4v1.ForwardingPipelineConfig
		code   codes.Code
	}{
		"no action":       {p4v1.SetForwardingPipelineConfigRequest_UNSPECIFIED, config, codes.InvalidArgument},
		"strange action":  {99, config, codes.InvalidArgument},
		"commit nothing":  {commitOld, nil, codes.NotFound},
		"commit with":     {commitOld, config, codes.InvalidArgument},
		"verify nothing":  {verify, nil, codes.InvalidArgument},
		"save nothing":    {saveOnly, nil, codes.InvalidArgument},
		"replace nothing": {commitNew, nil, codes.InvalidArgument},
		"keep nothing":    {reconcile, nil, codes.InvalidArgument},
		"no program":      {verify, &p4v1.ForwardingPipelineConfig{P4Info: config.P4Info}, codes.InvalidArgument},
		"no json":         {commitNew, &p4v1.ForwardingPipelineConfig{P4Info: config.P4Info, P4DeviceConfig: []byte("x")}, codes.InvalidArgument},
	} {
		if err := s.configure(c.action, c.config); codeOfRPC(err) != c.code {
			t.Errorf("%s: got %v, want %v", name, err, c.code)
		}
	}
	s.must(s.configure(commitNew, config))
	for typ, want := range map[p4v1.GetForwardingPipelineConfigRequest_ResponseType]*p4v1.ForwardingPipelineConfig{
		p4v1.GetForwardingPipelineConfigRequest_ALL:                      config,
		p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY:              {Cookie: config.Cookie},
		p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE:        {Cookie: config.Cookie, P4Info: config.P4Info},
		p4v1.GetForwardingPipelineConfigRequest_DEVICE_CONFIG_AND_COOKIE: {Cookie: config.Cookie, P4DeviceConfig: config.P4DeviceConfig},
	} {
		if got := r.getConfig(typ); !proto.Equal(got, want) {
			t.Errorf("%v: got %d bytes, want %d", typ, proto.Size(got), proto.Size(want))
		}
	}
	_, err := r.client.GetForwardingPipelineConfig(r.context(), &p4v1.GetForwardingPipelineConfigRequest{DeviceId: 1})
	if codeOfRPC(err) != codes.NotFound {
		t.Errorf("the config of an unknown device: %v", err)
	}
	backup := &session{t: t, rig: r, id: uint128(0)}
	if err := backup.configure(verify, config); codeOfRPC(err) != codes.PermissionDenied {
		t.Errorf("a backup verifies: %v", err)
	}
}

// TestSavedConfig: requests refer to a saved config; packets use the committed
// one until the next commit.
func TestSavedConfig(t *testing.T) {
	s := configured(t)
	in, out := newTestPort(), newTestPort()
	s.must(s.rig.dev.AddPort(1, in, nil))
	s.must(s.rig.dev.AddPort(2, out, nil))
	old := exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x02"}, "\x01", "\x01")
	s.must(s.write(insert(t, old)))

	s.must(s.configure(saveOnly, testConfig(t)))
	s.mustRead(2, entityOf(&p4v1.TableEntry{})) // the program's own entries
	next := exactEntry(t, "AllIngress.macs", "AllIngress.forward", []string{"\x02"}, "\x07", "\x01")
	s.must(s.write(insert(t, next)))
	in.in <- frame(1, 9, "old")
	out.wantPacket(t, frame(1, 9, "old"))

	s.must(s.configure(commitOld, nil))
	in.in <- frame(7, 9, "new")
	out.wantPacket(t, frame(7, 9, "new"))
	s.mustRead(3, entityOf(&p4v1.TableEntry{}))
	if err := s.configure(commitOld, nil); codeOfRPC(err) != codes.NotFound {
		t.Errorf("a second commit: %v", err)
	}
	// A commit with its own config discards the saved one.
	s.must(s.configure(saveOnly, testConfig(t)))
	s.must(s.configure(commitNew, testConfig(t)))
	if err := s.configure(commitOld, nil); codeOfRPC(err) != codes.NotFound {
		t.Errorf("a commit of what has been replaced: %v", err)
	}
}

func TestCommitClears(t *testing.T) {
	s := configured(t)
	fresh, err := s.read(everything()...)
	s.must(err)
	s.must(s.write(oneOfEach(t, ins)...))
	s.must(s.write(oneOfEach(t, mod)...))
	s.must(s.configure(commitNew, testConfig(t)))
	after, err := s.read(everything()...)
	s.must(err)
	wantSame(t, fresh, after)
}

func TestReconcile(t *testing.T) {
	s := configured(t)
	s.must(s.write(oneOfEach(t, ins)...))
	s.must(s.write(oneOfEach(t, mod)...))
	before, err := s.read(everything()...)
	s.must(err)
	next := nextConfig(t)
	next.Cookie = &p4v1.ForwardingPipelineConfig_Cookie{Cookie: 43}
	s.must(s.configure(reconcile, next))
	after, err := s.read(everything()...)
	s.must(err)
	wantSame(t, before, after)
	got := s.mustRead(1, registerEntity(t, "AllIngress.sizes", 5, nil))[0]
	if string(got.GetRegisterEntry().GetData().GetBitstring()) != "\x02" {
		t.Errorf("the register has %v", got)
	}
	if c := s.rig.getConfig(p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY).GetCookie().GetCookie(); c != 43 {
		t.Errorf("the cookie is %d", c)
	}

	// A program that lacks a table with entries cannot keep them.
	other := proto.Clone(next).(*p4v1.ForwardingPipelineConfig)
	for i, tb := range other.P4Info.Tables {
		if tb.GetPreamble().GetName() == "AllIngress.macs" {
			other.P4Info.Tables = append(other.P4Info.Tables[:i], other.P4Info.Tables[i+1:]...)
			break
		}
	}
	if err := s.configure(reconcile, other); codeOfRPC(err) != codes.InvalidArgument {
		t.Errorf("entries without table are kept: %v", err)
	}
	after, err = s.read(everything()...)
	s.must(err)
	wantSame(t, before, after)
}

// TestReconcileSame: the running program continues unchanged, including its
// meters, and gets the new cookie.
func TestReconcileSame(t *testing.T) {
	s := configured(t)
	s.must(s.write(oneOfEach(t, ins)...))
	runs := s.rig.server.running
	same := testConfig(t)
	same.Cookie = &p4v1.ForwardingPipelineConfig_Cookie{Cookie: 43}
	s.must(s.configure(reconcile, same))
	if s.rig.server.running != runs {
		t.Error("the program has been replaced")
	}
	if c := s.rig.getConfig(p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY).GetCookie().GetCookie(); c != 43 {
		t.Errorf("the cookie is %d", c)
	}
	// If another program has been saved, it is the base for reconciling.
	s.must(s.configure(p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE, nextConfig(t)))
	s.must(s.configure(reconcile, same))
	if s.rig.server.running == runs {
		t.Error("the saved program is still there")
	}
	s.mustRead(0, entityOf(&p4v1.TableEntry{TableId: idOf(t, "AllIngress.routes")}))
}

// TestBadP4Info modifies the P4Info so that it does not fit the program.
func TestBadP4Info(t *testing.T) {
	for name, change := range map[string]func(*configv1.P4Info){
		"id twice":   func(p *configv1.P4Info) { p.Tables[1].Preamble.Id = p.Tables[0].Preamble.Id },
		"id 0":       func(p *configv1.P4Info) { p.Counters[0].Preamble.Id = 0 },
		"no table":   func(p *configv1.P4Info) { p.Tables[0].Preamble.Name = "nothing" },
		"no action":  func(p *configv1.P4Info) { p.Tables[0].ActionRefs[0].Id = 1 },
		"no profile": func(p *configv1.P4Info) { p.Tables[0].ImplementationId = 1 },
		"match kind": func(p *configv1.P4Info) {
			p.Tables[0].MatchFields[0].Match = &configv1.MatchField_MatchType_{MatchType: configv1.MatchField_LPM}
		},
		"match unknown": func(p *configv1.P4Info) {
			p.Tables[0].MatchFields[0].Match = &configv1.MatchField_OtherMatchType{OtherMatchType: "x"}
		},
		"match count":   func(p *configv1.P4Info) { p.Tables[0].MatchFields = nil },
		"string type":   func(p *configv1.P4Info) { p.Tables[0].MatchFields[0].Bitwidth = 0 },
		"counter size":  func(p *configv1.P4Info) { p.Counters[0].Size = 9 },
		"no register":   func(p *configv1.P4Info) { p.Registers[0].Preamble.Name = "nothing" },
		"register size": func(p *configv1.P4Info) { p.Registers[0].Size = 1 },
		"register type": func(p *configv1.P4Info) { p.Registers[0].TypeSpec = nil },
		"no digest":     func(p *configv1.P4Info) { p.Digests[0].Preamble.Name = "nothing" },
		"direct table":  func(p *configv1.P4Info) { p.DirectCounters[0].DirectTableId = 1 },
		"no meter":      func(p *configv1.P4Info) { p.Meters[0].Preamble.Name = "nothing" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newRig(t, Options{}).primary()
			c := testConfig(t)
			c.P4Info = proto.Clone(c.P4Info).(*configv1.P4Info)
			change(c.P4Info)
			if err := s.configure(commitNew, c); codeOfRPC(err) != codes.InvalidArgument {
				t.Errorf("got %v, want INVALID_ARGUMENT", err)
			}
		})
	}
}

// TestTutorialConfig: controllers of the P4 tutorials wrap the JSON.
func TestTutorialConfig(t *testing.T) {
	s := newRig(t, Options{}).primary()
	c := testConfig(t)
	wrapped := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	wrapped = protowire.AppendBytes(protowire.AppendTag(wrapped, 3, protowire.BytesType), c.P4DeviceConfig)
	c.P4DeviceConfig = wrapped
	s.must(s.configure(commitNew, c))
	if got := s.rig.getConfig(p4v1.GetForwardingPipelineConfigRequest_ALL); !proto.Equal(got, c) {
		t.Error("the config is not returned as it was sent")
	}
}

// TestProgramEntries: the program's entries can be read, in their order.
func TestProgramEntries(t *testing.T) {
	s := configured(t)
	id := idOf(t, "AllIngress.fixed")
	list := s.mustRead(2, entityOf(&p4v1.TableEntry{TableId: id}))
	want := []*p4v1.TableEntry{
		{TableId: id, Match: []*p4v1.FieldMatch{ternary(1, "\x10", "\xf0")}, Priority: 2, IsConst: true, Action: tableAction(action(t, "AllIngress.mark", "\x01"))},
		{TableId: id, Priority: 1, IsConst: true, Action: tableAction(action(t, "AllIngress.mark", "\x02"))},
	}
	for i, e := range list {
		if !proto.Equal(e.GetTableEntry(), want[i]) {
			t.Errorf("entry %d is %v, want %v", i, e.GetTableEntry(), want[i])
		}
	}
	def := s.mustRead(1, entityOf(&p4v1.TableEntry{TableId: idOf(t, "AllIngress.keyless"), IsDefaultAction: true}))[0].GetTableEntry()
	initial := &p4v1.TableEntry{TableId: def.TableId, IsDefaultAction: true, Action: tableAction(action(t, "AllIngress.mark", "\x07"))}
	if !proto.Equal(def, initial) {
		t.Errorf("the default entry is %v, want %v", def, initial)
	}
	changed := proto.Clone(initial).(*p4v1.TableEntry)
	changed.Action, changed.Metadata = tableAction(action(t, "NoAction")), []byte("m")
	s.must(s.write(modify(t, changed)))
	if got := s.mustRead(1, entityOf(&p4v1.TableEntry{TableId: def.TableId, IsDefaultAction: true}))[0].GetTableEntry(); !proto.Equal(got, changed) {
		t.Errorf("the changed default entry is %v, want %v", got, changed)
	}
	s.must(s.write(modify(t, &p4v1.TableEntry{TableId: def.TableId, IsDefaultAction: true})))
	if got := s.mustRead(1, entityOf(&p4v1.TableEntry{TableId: def.TableId, IsDefaultAction: true}))[0].GetTableEntry(); !proto.Equal(got, initial) {
		t.Errorf("the default entry is reset to %v, want %v", got, initial)
	}
}

func TestReadFilters(t *testing.T) {
	s := configured(t)
	a, b := aclEntry(t, 5, exact(4, "\x01")), aclEntry(t, 6, exact(4, "\x01"))
	a.Metadata = []byte("a")
	b.Action = tableAction(action(t, "NoAction"))
	s.must(s.write(insert(t, a), insert(t, b), insert(t, macEntry(t, "\x01"))))
	for name, c := range map[string]struct {
		filter *p4v1.TableEntry
		want   int
	}{
		"all tables":    {&p4v1.TableEntry{}, 5},
		"table":         {&p4v1.TableEntry{TableId: a.TableId}, 2},
		"priority":      {&p4v1.TableEntry{TableId: a.TableId, Priority: 5}, 1},
		"match":         {&p4v1.TableEntry{TableId: a.TableId, Match: a.Match}, 2},
		"both":          {&p4v1.TableEntry{TableId: a.TableId, Match: a.Match, Priority: 6}, 1},
		"metadata":      {&p4v1.TableEntry{TableId: a.TableId, Metadata: []byte("a")}, 1},
		"action":        {&p4v1.TableEntry{TableId: a.TableId, Action: tableAction(action(t, "NoAction"))}, 1},
		"nothing":       {&p4v1.TableEntry{TableId: a.TableId, Priority: 9}, 0},
		"default":       {&p4v1.TableEntry{TableId: a.TableId, IsDefaultAction: true}, 1},
		"all defaults":  {&p4v1.TableEntry{IsDefaultAction: true}, 8},
		"unknown match": {&p4v1.TableEntry{TableId: a.TableId, Match: []*p4v1.FieldMatch{exact(4, "\x09")}}, 0},
	} {
		list, err := s.read(entityOf(c.filter))
		if err != nil || len(list) != c.want {
			t.Errorf("%s: got %d entries, %v, want %d", name, len(list), err, c.want)
		}
	}
	// The valid requests of a batch are answered.
	list, err := s.read(entityOf(&p4v1.TableEntry{TableId: a.TableId}), &p4v1.Entity{}, entityOf(&p4v1.TableEntry{TableId: 1}), counterEntity(t, 1, nil))
	got := updateCodes(err)
	if len(list) != 3 || len(got) != 4 || got[0] != codes.OK || got[1] != codes.InvalidArgument || got[2] != codes.InvalidArgument || got[3] != codes.OK {
		t.Errorf("got %d entities, %v", len(list), describe(err))
	}
}

// TestConfigAnswers: clients receive the config that was set, and the program
// is not copied for each of them.
func TestConfigAnswers(t *testing.T) {
	c := newCodec()
	config := testConfig(t)
	for _, m := range []*p4v1.ForwardingPipelineConfig{
		nil, {}, config, {Cookie: config.Cookie}, {P4Info: config.P4Info}, {P4DeviceConfig: config.P4DeviceConfig, Cookie: config.Cookie},
	} {
		want := &p4v1.GetForwardingPipelineConfigResponse{Config: m}
		list, err := c.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := new(p4v1.GetForwardingPipelineConfigResponse)
		if err := proto.Unmarshal(list.Materialize(), got); err != nil || !proto.Equal(got, want) {
			t.Errorf("%v: got %v, %v", want, got, err)
		}
	}
	answer := &p4v1.GetForwardingPipelineConfigResponse{Config: config}
	const answers = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range answers {
		if _, err := c.Marshal(answer); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if size := (after.TotalAlloc - before.TotalAlloc) / answers; size > 2000 {
		t.Errorf("an answer takes %d bytes", size)
	}
}
