package deployed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

const pairFabric = `switches:
  l1: {role: leaf, id: 11, grpc: "127.0.0.1:9551", thrift: "127.0.0.1:9091"}
  l2: {role: leaf, id: 12, grpc: "127.0.0.1:9552"}
  s1: {role: spine, id: 13, grpc: "127.0.0.1:9553"}
hosts:
  h1: {ip: 10.0.1.1/24}
  h2: {ip: 10.0.2.1/24}
links:
  - {ends: [h1, l1], rate: 1G}
  - {ends: [h2, l2], rate: 1G}
  - {ends: [l1, s1], rate: 1G}
  - {ends: [l2, s1], rate: 1G}
`

// A placed target knows the addresses of some switches.
type placed struct {
	target.Target
	at map[string]target.Endpoint
}

func (placed) Name() string { return "placed" }

func (p placed) Endpoint(name string) (target.Endpoint, error) {
	e, ok := p.at[name]
	if !ok {
		return e, target.ErrUnreachable
	}
	return e, nil
}

func pairPlan(t *testing.T, by fabric.Grouping) *plan.Plan {
	t.Helper()
	top, err := fabric.Load("pair.yaml", []byte(pairFabric))
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Scheme: "hula", Topology: top, Routes: top.Routes(), Grouping: by}
	leaf := &plan.Pipeline{Manifest: manifest.Manifest{Scheme: "hula", Role: "leaf"}}
	for _, s := range top.Switches {
		pipeline := leaf
		switch s.Name {
		case "l2": // the same role, another program
			pipeline = &plan.Pipeline{Manifest: manifest.Manifest{Scheme: "hula-2", Role: "leaf"}}
		case "s1":
			pipeline = &plan.Pipeline{Manifest: manifest.Manifest{Scheme: "hula", Role: "spine"}}
		}
		p.Switches = append(p.Switches, &plan.Switch{Name: s.Name, Role: s.Role, Device: s.ID, Pipeline: pipeline})
	}
	return p
}

// A written state describes each switch with the addresses of the target, or else with the
// addresses of the topology.
func TestNote(t *testing.T) {
	for _, by := range []fabric.Grouping{fabric.ByHops, fabric.ByLeaf} {
		p := pairPlan(t, by)
		to := placed{at: map[string]target.Endpoint{
			"l2": {Address: "10.9.9.9:1", Device: 0, Thrift: "10.9.9.9:2"},
			"s1": {Address: "10.9.9.9:3", Device: 5, Speak: func(grpc.ClientConnInterface) target.Session { return target.Session{} }},
		}}
		note := New(p, to)
		note.Kept, note.Name, note.Control, note.Folder = true, "net1", "/run/x", "/home"
		file := filepath.Join(t.TempDir(), "new", "net.json")
		if err := note.Write(file); err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700 | os.ModeDir} {
			if info, err := os.Stat(name); err != nil || info.Mode() != mode {
				t.Errorf("%s: mode %v, %v; want %v", name, info.Mode(), err, mode)
			}
		}
		if files, _ := os.ReadDir(filepath.Dir(file)); len(files) != 1 {
			t.Errorf("writing leaves %v", files)
		}
		got, top, err := Read(file)
		if err != nil {
			t.Fatal(err)
		}
		if got.Scheme != "hula" || got.Target != "placed" || !got.Kept || got.Name != "net1" || got.Control != "/run/x" || got.Folder != "/home" || !got.Began.Equal(note.Began) || got.ByLeaf != (by == fabric.ByLeaf) {
			t.Errorf("state %+v, want %+v", got, note)
		}
		if string(top.YAML()) != string(p.Topology.YAML()) {
			t.Errorf("topology\n%s", top.YAML())
		}
		var rows []string
		for _, s := range got.Switches {
			rows = append(rows, fmt.Sprint(s.Name, " ", s.Role, " ", s.Device, " ", s.GRPC, " ", s.API, " ", s.Thrift))
		}
		if want := []string{
			"l1 leaf 11 127.0.0.1:9551  127.0.0.1:9091",
			"l2 leaf 0 10.9.9.9:1  10.9.9.9:2",
			"s1 spine 5 10.9.9.9:3 bfrt ",
		}; !slices.Equal(rows, want) {
			t.Errorf("switches\n%q\nwant\n%q", rows, want)
		}
		nodes, err := got.Nodes(top)
		if err != nil {
			t.Fatal(err)
		}
		rows = nil
		for _, n := range nodes {
			rows = append(rows, fmt.Sprint(n.Name, " ", n.Manifest.Scheme, " ", n.Manifest.Role, " ", n.ByLeaf))
		}
		leaf := fmt.Sprint(by == fabric.ByLeaf)
		if want := []string{"l1 hula leaf " + leaf, "l2 hula-2 leaf " + leaf, "s1 hula spine " + leaf}; !slices.Equal(rows, want) {
			t.Errorf("nodes %q, want %q", rows, want)
		}
		delete(got.Manifests, fabric.Spine)
		if _, err := got.Nodes(top); err == nil || !strings.Contains(err.Error(), "s1: there is no program for the role spine") {
			t.Errorf("a role without a program: %v", err)
		}
	}
}

// A state that cannot be read is refused with the reason and the line.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "net.json")
	if _, _, err := Read(file); !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), file) {
		t.Errorf("no file: %v", err)
	}
	for name, test := range map[string]struct{ text, want string }{
		"no JSON":            {"{\n\"version\": x}", "net.json: line 2: "},
		"an older version":   {fmt.Sprintf(`{"version": %d}`, version-1), fmt.Sprintf("has version %d, want %d", version-1, version)},
		"a later version":    {fmt.Sprintf(`{"version": %d}`, version+1), fmt.Sprintf("has version %d, want %d", version+1, version)},
		"no topology":        {fmt.Sprintf(`{"version": %d, "topology": "nonsense"}`, version), "reading the state: "},
		"a field of no text": {fmt.Sprintf(`{"version": %d, "target": 5}`, version), "line 1"},
	} {
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Read(file); err == nil || errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	folder := filepath.Join(dir, "folder.json")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(folder); err == nil || errors.Is(err, ErrNothing) {
		t.Errorf("a folder: %v", err)
	}
	if err := (&Note{Version: version}).Write(folder); err == nil {
		t.Error("a folder is replaced by a state")
	}
	if err := (&Note{Version: version}).Write(filepath.Join(file, "net.json")); err == nil {
		t.Error("a state is written below a file")
	}
}

// The state files of the user's folder are listed, and no other files. Each deployment
// folder has its own state file, for any name of the folder.
func TestStates(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if list, err := States(); err != nil || len(list) > 0 {
		t.Errorf("states %q, %v", list, err)
	}
	work := t.TempDir()
	real := filepath.Join(work, "a b.c-D_9")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(work, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	file, err := StateOf(real)
	if err != nil || !strings.HasPrefix(filepath.Base(file), "a_b_c-D_9-") || filepath.Ext(file) != ".json" {
		t.Errorf("%s, %v", file, err)
	}
	if by, err := StateOf(link); err != nil || by != file {
		t.Errorf("through a link: %s, %v; want %s", by, err, file)
	}
	t.Chdir(real)
	if by, err := StateOf("."); err != nil || by != file {
		t.Errorf("from inside: %s, %v; want %s", by, err, file)
	}
	long, err := StateOf("/" + strings.Repeat("x", 100))
	if name := filepath.Base(long); err != nil || len(name) != 40+1+8+len(".json") {
		t.Errorf("a long name becomes %s, %v", name, err)
	}
	lock, err := Own(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Note{Version: version}).Write(file); err != nil {
		t.Fatal(err)
	}
	log, err := OpenLog(file)
	if err != nil {
		t.Fatal(err)
	}
	log.WriteString("one")
	log.Close()
	if log, err = OpenLog(file); err != nil {
		t.Fatal(err)
	}
	log.WriteString("two")
	log.Close()
	if text, err := os.ReadFile(LogFile(file)); err != nil || string(text) != "two" {
		t.Errorf("the log of a second deployment is %q, %v", text, err)
	}
	if list, err := States(); err != nil || !slices.Equal(list, []string{file}) {
		t.Errorf("states %q, %v; want %s", list, err, file)
	}
	if pid, err := EndOwner(t.Context(), file, 0); err == nil || pid != os.Getpid() {
		t.Errorf("this process ends itself: %d, %v", pid, err)
	}
	if err := Forget(file); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d runs this deployment", os.Getpid())) {
		t.Errorf("forgetting a deployment that runs: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Errorf("releasing twice: %v", err)
	}
	if list, _ := States(); len(list) != 1 {
		t.Error("a released deployment has no state")
	}
	if err := Forget(file); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(filepath.Dir(file)); err != nil || len(files) > 0 {
		t.Errorf("a forgotten deployment leaves %v, %v", files, err)
	}
	if err := Forget(file); err != nil {
		t.Errorf("forgetting nothing: %v", err)
	}
}
