package p4rt

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
)

// A spec is one fact of the P4Runtime specification; its name begins with the
// section. Each spec starts with a fresh program: it writes some entities,
// attempts an update that must end with a code, and reads, expecting a number
// of entities or an error.
type spec struct {
	name   string
	before []*p4v1.Update
	do     *p4v1.Update
	want   codes.Code
	ask    *p4v1.Entity
	n      int
	asked  codes.Code
	run    func(*testing.T, *session)
}

// TestSpecification checks the server against the facts in docs/p4runtime.md.
func TestSpecification(t *testing.T) {
	r := newRig(t, Options{})
	for _, port := range []uint32{1, 2, 3} {
		if err := r.dev.AddPort(port, newTestPort(), nil); err != nil {
			t.Fatal(err)
		}
	}
	s := r.primary()
	var all []spec
	for _, some := range []func(testing.TB) []spec{
		specMatches, specActions, specDefaults, specConstants, specReads, specProfiles, specOneShots,
		specArrays, specDirect, specReplication, specSets, specUpdates, specRequests, specBatches, specConfigs,
	} {
		all = append(all, some(t)...)
	}
	names := map[string]bool{}
	for _, c := range all {
		if names[c.name] {
			t.Errorf("two facts are named %q", c.name)
		}
		names[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			s.must(s.configure(commitNew, testConfig(t)))
			if len(c.before) > 0 {
				if err := s.write(c.before...); err != nil {
					t.Fatal(describe(err))
				}
			}
			if c.do != nil {
				s.t = t
				s.wantWrite(c.want, c.do)
				s.t = r.t
			}
			if c.ask != nil {
				wantAnswer(t, s, &c)
			}
			if c.run != nil {
				c.run(t, s)
			}
		})
	}
	if len(all) < 713 {
		t.Errorf("there are %d facts, want at least 713", len(all))
	}
	wantDocument(t, names)
}

func wantAnswer(t *testing.T, s *session, c *spec) {
	t.Helper()
	list, err := s.read(c.ask)
	got := codes.OK
	if err != nil {
		if all := updateCodes(err); len(all) == 1 {
			got = all[0]
		} else {
			got = codeOfRPC(err)
		}
	}
	if got != c.asked || len(list) != c.n {
		t.Errorf("reading %v: %d entities and %v, want %d and %v", c.ask, len(list), err, c.n, c.asked)
	}
}

// verbs maps types of updates to their names.
var verbs = map[p4v1.Update_Type]string{
	p4v1.Update_UNSPECIFIED: "UNSPECIFIED", ins: "INSERT", mod: "MODIFY", del: "DELETE", 77: "an unknown type",
}

// specUpdates tests each type of update for each kind of entity, both if the
// entity exists and if it does not.
func specUpdates(t testing.TB) []spec {
	var all []spec
	const bad = codes.InvalidArgument
	kinds := []string{"ActionProfileMember", "TableEntry to a member", "TableEntry with a one-shot", "TableEntry with a prefix", "TableEntry", "MulticastGroupEntry", "CloneSessionEntry", "DigestEntry"}
	there, gone := oneOfEach(t, ins), oneOfEach(t, ins)
	for i, kind := range kinds {
		e := func() *p4v1.Entity { return oneOfEach(t, mod)[i].GetEntity() }
		// The entry that refers to the member is not needed here.
		before := there[i : i+1]
		if i == 1 {
			before = there[:2]
		}
		var needed []*p4v1.Update
		if i == 1 {
			needed = gone[:1]
		}
		for typ, codes := range map[p4v1.Update_Type][2]codes.Code{
			p4v1.Update_UNSPECIFIED: {bad, bad}, 77: {bad, bad},
			ins: {codes.AlreadyExists, codes.OK}, mod: {codes.OK, codes.NotFound}, del: {codes.OK, codes.NotFound},
		} {
			all = append(all,
				spec{name: fmt.Sprintf("12 %s of a %s that is there", verbs[typ], kind), before: before, do: update(typ, e()), want: codes[0]},
				spec{name: fmt.Sprintf("12 %s of a %s that is not there", verbs[typ], kind), before: needed, do: update(typ, e()), want: codes[1]})
		}
	}
	routed := []*p4v1.Update{insert(t, route(t, "\x0a\x00\x00\x00", 8, "\x01"))}
	for i, kind := range []string{"default entry", "CounterEntry", "DirectCounterEntry", "MeterEntry", "DirectMeterEntry", "ValueSetEntry", "RegisterEntry"} {
		e := func() *p4v1.Entity { return always(t, "\x02")[i] }
		for _, typ := range []p4v1.Update_Type{p4v1.Update_UNSPECIFIED, 77, ins, mod, del} {
			want := bad
			if typ == mod || typ == ins && kind == "RegisterEntry" { // an example of the specification inserts a cell
				want = codes.OK
			}
			all = append(all, spec{name: fmt.Sprintf("12 %s of a %s", verbs[typ], kind), before: routed, do: update(typ, e()), want: want})
		}
	}
	for name, e := range map[string]*p4v1.Entity{"no entity": nil, "an empty entity": {}} {
		for _, typ := range []p4v1.Update_Type{ins, mod, del} {
			all = append(all, spec{name: fmt.Sprintf("12 %s of %s", verbs[typ], name), do: update(typ, e), want: bad})
		}
	}
	extern := &p4v1.Entity{Entity: &p4v1.Entity_ExternEntry{ExternEntry: &p4v1.ExternEntry{ExternTypeId: 0x81, ExternId: 1}}}
	for _, typ := range []p4v1.Update_Type{ins, mod, del} {
		all = append(all, spec{name: "9.9 " + verbs[typ] + " of an extern is not known here", do: update(typ, extern), want: codes.Unimplemented})
	}
	return append(all,
		spec{name: "9.9 reading an extern is not known here", ask: extern, asked: codes.Unimplemented},
		spec{name: "9.9 a wildcard over externs finds none", ask: &p4v1.Entity{Entity: &p4v1.Entity_ExternEntry{ExternEntry: &p4v1.ExternEntry{}}}},
	)
}

// specRequests tests errors of whole requests.
func specRequests(t testing.TB) []spec {
	entry := macEntry(t, "\x01")
	device := func(code codes.Code, call func(*session) error) func(*testing.T, *session) {
		return func(t *testing.T, s *session) {
			t.Helper()
			if err := call(s); codeOfRPC(err) != code {
				t.Errorf("got %v, want %v", err, code)
			}
		}
	}
	write := func(id uint64, role string, election *p4v1.Uint128, a p4v1.WriteRequest_Atomicity, list ...*p4v1.Update) func(*session) error {
		return func(s *session) error {
			_, err := s.rig.client.Write(s.rig.context(), &p4v1.WriteRequest{DeviceId: id, Role: role, ElectionId: election, Atomicity: a, Updates: list})
			return err
		}
	}
	set := func(id uint64, role string, election *p4v1.Uint128, action configAction, c *p4v1.ForwardingPipelineConfig) func(*session) error {
		return func(s *session) error {
			_, err := s.rig.client.SetForwardingPipelineConfig(s.rig.context(), &p4v1.SetForwardingPipelineConfigRequest{DeviceId: id, Role: role, ElectionId: election, Action: action, Config: c})
			return err
		}
	}
	read := func(id uint64, role string) func(*session) error {
		return func(s *session) error {
			stream, err := s.rig.client.Read(s.rig.context(), &p4v1.ReadRequest{DeviceId: id, Role: role, Entities: []*p4v1.Entity{entityOf(&p4v1.TableEntry{})}})
			if err != nil {
				return err
			}
			for err == nil {
				_, err = stream.Recv()
			}
			if err.Error() == "EOF" {
				return nil
			}
			return err
		}
	}
	get := func(id uint64, kind p4v1.GetForwardingPipelineConfigRequest_ResponseType) func(*session) error {
		return func(s *session) error {
			_, err := s.rig.client.GetForwardingPipelineConfig(s.rig.context(), &p4v1.GetForwardingPipelineConfigRequest{DeviceId: id, ResponseType: kind})
			return err
		}
	}
	c, one := testConfig(t), uint128(1)
	with := func(change func(*p4v1.ForwardingPipelineConfig)) *p4v1.ForwardingPipelineConfig {
		x := testConfig(t)
		change(x)
		return x
	}
	garbage := with(func(c *p4v1.ForwardingPipelineConfig) { c.P4DeviceConfig = []byte("nonsense") })
	noInfo := with(func(c *p4v1.ForwardingPipelineConfig) { c.P4Info = nil })
	var all []spec
	add := func(name string, code codes.Code, call func(*session) error) {
		all = append(all, spec{name: name, run: device(code, call)})
	}
	add("12 a write to another device", codes.NotFound, write(9, "", one, 0, insert(t, entry)))
	add("12 a write to device 0", codes.NotFound, write(0, "", one, 0, insert(t, entry)))
	add("12 a write of an unknown role", codes.NotFound, write(testDevice, "x", one, 0, insert(t, entry)))
	add("12 a write without election id", codes.PermissionDenied, write(testDevice, "", nil, 0, insert(t, entry)))
	add("12 a write with a smaller election id", codes.PermissionDenied, write(testDevice, "", uint128(0), 0, insert(t, entry)))
	add("12 a write with a larger election id", codes.PermissionDenied, write(testDevice, "", uint128(2), 0, insert(t, entry)))
	add("12 a write with another high part", codes.PermissionDenied, write(testDevice, "", &p4v1.Uint128{High: 1, Low: 1}, 0, insert(t, entry)))
	add("12 a write of nothing", codes.OK, write(testDevice, "", one, 0))
	add("12.2 an unknown atomicity", codes.InvalidArgument, write(testDevice, "", one, 9, insert(t, entry)))
	add("12.2 ROLLBACK_ON_ERROR of valid updates", codes.OK, write(testDevice, "", one, p4v1.WriteRequest_ROLLBACK_ON_ERROR, insert(t, entry)))
	add("12.2 DATAPLANE_ATOMIC of valid updates", codes.OK, write(testDevice, "", one, p4v1.WriteRequest_DATAPLANE_ATOMIC, insert(t, entry)))
	add("12.3 a batch that fails is UNKNOWN", codes.Unknown, write(testDevice, "", one, 0, insert(t, entry), insert(t, entry)))
	add("13 a read of another device", codes.NotFound, read(9, ""))
	add("13 a read of an unknown role", codes.NotFound, read(testDevice, "x"))
	add("13 a read of all", codes.OK, read(testDevice, ""))
	add("14 a config for another device", codes.NotFound, set(9, "", one, commitNew, c))
	add("14 a config of an unknown role", codes.NotFound, set(testDevice, "x", one, commitNew, c))
	add("14 a config without election id", codes.PermissionDenied, set(testDevice, "", nil, commitNew, c))
	add("14 a config with another election id", codes.PermissionDenied, set(testDevice, "", uint128(2), commitNew, c))
	add("14 an unspecified action", codes.InvalidArgument, set(testDevice, "", one, 0, c))
	add("14 an unknown action", codes.InvalidArgument, set(testDevice, "", one, 99, c))
	add("14 COMMIT of nothing saved", codes.NotFound, set(testDevice, "", one, p4v1.SetForwardingPipelineConfigRequest_COMMIT, nil))
	add("14 COMMIT with a config", codes.InvalidArgument, set(testDevice, "", one, p4v1.SetForwardingPipelineConfigRequest_COMMIT, c))
	for _, a := range []configAction{verify, p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE, commitNew, p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT} {
		add(fmt.Sprintf("14 %v", a), codes.OK, set(testDevice, "", one, a, c))
		add(fmt.Sprintf("14 %v without a config", a), codes.InvalidArgument, set(testDevice, "", one, a, nil))
		add(fmt.Sprintf("14 %v of garbage", a), codes.InvalidArgument, set(testDevice, "", one, a, garbage))
		if a != verify && a != p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE {
			add(fmt.Sprintf("14 %v without P4Info has no tables", a), codes.OK, set(testDevice, "", one, a, noInfo))
		}
	}
	add("15 the config of another device", codes.NotFound, get(9, 0))
	add("15 an unknown part of the config", codes.InvalidArgument, get(testDevice, 99))
	for i := range p4v1.GetForwardingPipelineConfigRequest_ResponseType(4) {
		add(fmt.Sprintf("15 the config's %v", i), codes.OK, get(testDevice, i))
	}
	return all
}

// wantDocument checks that the tests named in docs/p4runtime.md exist, and that
// each section with facts has at least one.
func wantDocument(t *testing.T, facts map[string]bool) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/p4runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "../gate/*_test.go", "../../device/ports/*_test.go", "../../../controller/*_test.go", "../../controller/*/*_test.go", "../../network/*/*_test.go", "../../../cmd/p4lb/*_test.go", "../thrift/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			source, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(source)
		}
	}
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1) {
		if !strings.Contains(tests.String(), "func "+name+"(t ") {
			t.Errorf("docs/p4runtime.md names %s, which is not there", name)
		}
	}
	for _, m := range regexp.MustCompile(`facts ((?:[0-9.]+(?:, )?)+)`).FindAllStringSubmatch(string(text), -1) {
		for section := range strings.SplitSeq(m[1], ",") {
			section = strings.Trim(section, " .")
			found := false
			for name := range facts {
				found = found || strings.HasPrefix(name, section)
			}
			if !found {
				t.Errorf("docs/p4runtime.md has facts %s, and there are none", section)
			}
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| [0-9][^|]*\|[^|]*\|([^|]*)\|$`).FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(row[1], "facts") && !strings.Contains(row[1], "Test") {
			t.Errorf("docs/p4runtime.md: nothing shows %q", row[0])
		}
	}
}
