package p4lb_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/p4lb/p4lb"

// rooms states which folder may import which: the architecture as a test. A
// room is a folder with all below it, unless a longer path has a line of its
// own. A folder without a line fails the test, so that a new room is a decision
// made here first. Tests may look further, for instance compile a program to
// run it, but never into a room of the shell.
var rooms = map[string][]string{
	// The public face: what others import.
	".": {"codegen", "scheme", "bmv2", "dataplane", "p4", "lab", "lab/spec"},

	"p4src":     {},
	"templates": {},
	"fitting":   {"plain"},
	// Which p4lb this is.
	"provenance": {},
	// What the standard library's slices lacks: open to every room, as that is.
	open: {},
	// Sizes, rates and times, as people write them.
	"units":  {},
	"fabric": {"units", "plain"},
	"bmv2":   {},
	// The Thrift interface of BMv2; its server's side is about a data plane.
	"bmv2/thrift": {"bmv2", "dataplane", "dataplane/hash"},
	"live":        {"p4rt/gate"},
	// The page in a browser.
	"live/web": {"live"},
	"examples": {},
	"manifest": {"plain"},
	// What bounds the YAML of all files before a parser reads it.
	"plain": {},
	"chart": {},
	// Attacks on the binary, from outside.
	"soak": {"bfrt/wire"},
	// What a release consists of, from a checkout.
	"release": {},
	// The picture of a session in README.
	"docs": {},
	// The documents as HTML.
	"docs/site": {"codegen", "manifest"},

	"bfrt": {},
	// BfRt's messages and calls, and its server on the embedded switch.
	"bfrt/wire":   {},
	"bfrt/server": {"bfrt", "bfrt/wire", "bmv2", "dataplane", "dataplane/hash", "dataplane/num", "p4rt", "p4rt/gate"},

	"advice":    {"fitting", "fabric"},
	"model":     {"fitting"},
	"codegen":   {"units", "plain", "templates", "fitting", "manifest", "p4/syntax", "p4src"},
	"dataplane": {"bmv2", "dataplane/num", "dataplane/hash", "dataplane/lookup", "dataplane/vector", "dataplane/cell", "dataplane/program"},
	// A program linked: what it does to a packet, without ports and queues.
	"dataplane/program": {"bmv2", "dataplane/num", "dataplane/hash", "dataplane/lookup", "dataplane/vector", "dataplane/cell", "dataplane/code", "dataplane/asm"},
	// Numbers of any width; hash algorithms.
	"dataplane/num":  {},
	"dataplane/hash": {"bmv2", "dataplane/num", "dataplane/vector"},
	// The vector of headers and metadata, and expressions over it.
	"dataplane/vector": {"bmv2", "dataplane/num"},
	// Registers, counters, meters, filters.
	"dataplane/cell": {"bmv2", "dataplane/num", "dataplane/vector"},
	// Expressions and assignments as machine code.
	"dataplane/asm":  {},
	"dataplane/code": {"bmv2", "dataplane/num", "dataplane/hash", "dataplane/vector", "dataplane/cell", "dataplane/asm"},
	// The indices of tables.
	"dataplane/lookup": {},
	// What the clients of a server can make it hold.
	"p4rt/gate": {},
	"p4rt":      {"p4rt/gate", "dataplane", "dataplane/num", "bmv2"},
	// Projects and entries in the files of other tools.
	"p4app": {"plain", "fabric", "dataplane", "dataplane/hash", "p4rt"},

	// The compiler's stages see only what stands before them.
	"p4/token":  {},
	"p4/syntax": {"p4/token"},
	// The formatter works on tokens; nobody needs it to compile.
	"p4/format": {"p4/token", "p4/syntax"},
	"p4/types":  {"plain", "p4/syntax"},
	// What the control plane calls things; what runs and what describes agree on it.
	"p4/names":    {"p4/syntax", "p4/types"},
	"p4/lower":    {"p4/syntax", "p4/types", "p4/names", "bmv2"},
	"p4/describe": {"p4/syntax", "p4/types", "p4/names", "bmv2", "bfrt"},
	"p4/lint":     {"p4/syntax", "p4/types"},
	"p4":          {"p4/syntax", "p4/types", "p4/lower", "p4/describe", "bmv2", "bfrt", "p4src"},
	"p4/p4test":   {"p4/syntax", "p4/types", "p4src"}, // for tests

	// The one way from a scheme's name to programs.
	"scheme": {"manifest", "codegen", "p4", "p4/format", "p4/syntax", "plain"},

	// Anybody's program as a scheme.
	"own": {"scheme", "manifest", "codegen", "bmv2", "p4", "p4/syntax", "plain"},

	"conformance": {"p4/syntax"},

	// A network's controller, from what is planned to what is read back: programs
	// by the ids of P4Runtime, what every switch must hold, what registers mean,
	// how switches are reached, what is read of them, what is done meanwhile.
	// A generated program as a leaf by itself.
	"leaf":                 {"codegen", "manifest", "scheme", "dataplane", "fitting"},
	"controller/p4info":    {"manifest"},
	"controller/plan":      {"controller/p4info", "fabric", "manifest"},
	"controller/registers": {"manifest", "bmv2"},
	"controller/target":    {"controller/plan", "controller/registers", "fabric", "bmv2", "bmv2/thrift"},
	"controller/pipeline":  {"manifest", "controller/plan", "fabric", "codegen", "scheme"},
	"controller/inspect":   {"plain", "controller/plan", "controller/registers", "fabric", "manifest", "fitting", "bmv2"},
	"controller/task":      {"controller/plan", "controller/registers", "fabric", "manifest", "fitting"},
	// What a deployment has done.
	"controller/report": {"controller/plan"},
	// Who is primary on a switch, and the stream to it.
	"controller/primary": {"controller/plan", "controller/target", "plain"},
	// The note that a deployment leaves for others on the machine.
	"controller/deployed": {"controller/plan", "controller/target", "fabric", "manifest", "plain"},
	"controller": {
		"controller/primary", "controller/report", "controller/p4info", "controller/plan", "controller/registers", "controller/target", "controller/inspect", "controller/task",
		"fabric", "manifest", "bmv2",
	},
	// The target that runs the switches in the process itself.
	"controller/embedded": {"bfrt/server", "controller/tofino", "manifest", "controller/plan", "controller/registers", "controller/target", "fabric", "bmv2", "bmv2/thrift", "dataplane", "p4rt", "p4rt/gate"},
	// The target of switches with Intel's SDE, and BfRt in P4Runtime's place.
	"controller/tofino": {"controller/p4info", "controller/plan", "controller/registers", "controller/target", "bfrt", "bfrt/wire", "bmv2", "manifest", "plain"},
	// The target that runs BMv2 in network namespaces.
	"controller/testbed": {"controller/plan", "controller/target", "controller/netspace", "fabric", "manifest"},
	// Network namespaces, and hosts in them for switches in this process.
	"controller/netspace": {"fabric"},
	"controller/hosts":    {"controller/netspace", "fabric", "p4rt"},
	// Flows between hosts by the kernel's TCP.
	"traffic": {},

	"sim": {"dataplane", "dataplane/asm", "fabric", "model"},
	// Results under digests, where many processes on many machines find them.
	"store": {"plain"},
	// Schedulers that run the shards of an experiment.
	"cluster": {},
	// What an experiment is stated in, and the oracle in the place of programs.
	"lab/spec":   {"advice", "codegen", "controller/plan", "fabric", "fitting", "plain", "scheme", "sim", "units"},
	"lab/native": {"codegen", "controller/plan", "fitting", "manifest", "model", "sim"},
	"lab": {
		"lab/spec", "lab/native",
		"provenance",
		"controller/pipeline",
		"units",
		"advice", "chart",
		"p4src", "templates", "fitting", "plain", "fabric", "bmv2", "manifest", "model", "codegen", "scheme", "dataplane", "p4rt",
		"p4/syntax", "p4/types", "p4/lower", "p4", "controller", "controller/embedded", "sim",
		"controller/plan", "controller/registers", "controller/target", "controller/inspect", "controller/task",
		"controller/hosts", "controller/testbed", "traffic", "store",
	},
	// What p4lb measures of itself.
	"bench": {
		"bfrt", "bfrt/server", "bfrt/wire", "bmv2", "codegen", "controller", "controller/deployed", "controller/embedded", "controller/inspect", "controller/netspace", "controller/plan",
		"controller/pipeline", "controller/registers", "controller/target", "dataplane", "examples", "fabric", "fitting", "leaf",
		"lab", "lab/native", "manifest", "model", "p4", "p4/syntax", "p4/types", "p4rt", "p4src", "scheme", "sim", "store",
	},
	// What verbs share, and the verbs in groups; the others are the command's own.
	"cmd/p4lb/cli":   {"bmv2", "codegen", "controller/inspect", "dataplane", "fabric", "fitting", "lab/spec", "manifest", "own", "p4", "p4/syntax", "p4app", "plain", "provenance", "scheme", "units"},
	"cmd/p4lb/view":  {"cmd/p4lb/cli", "controller", "controller/inspect", "controller/plan", "fabric", "live", "live/web", "plain"},
	"cmd/p4lb/serve": {"cmd/p4lb/cli", "bfrt/server", "bmv2", "bmv2/thrift", "dataplane", "fabric", "p4", "p4app", "p4rt", "p4rt/gate"},
	"cmd/p4lb/network": {
		"cmd/p4lb/cli", "cmd/p4lb/view", "bmv2/thrift", "codegen", "controller", "controller/deployed", "controller/embedded", "controller/hosts", "controller/inspect",
		"controller/netspace", "controller/pipeline", "controller/plan", "controller/primary", "controller/registers", "controller/report", "controller/target", "controller/task", "controller/tofino",
		"controller/testbed", "dataplane", "dataplane/hash", "fabric", "lab", "lab/spec", "live", "manifest", "own", "p4", "p4app", "p4rt", "plain",
	},
	"cmd/p4lb/experiment": {
		"cmd/p4lb/cli", "cmd/p4lb/view", "cluster", "codegen", "controller/hosts", "controller/inspect", "dataplane", "lab", "lab/spec", "live", "live/web",
		"plain", "provenance", "store",
	},
	"cmd": nil, // the command imports everything
}

// open is the room that all others may import.
const open = "lists"

// shell holds the rooms that nobody but cmd may import, tests included.
var shell = []string{"cmd", "cmd/p4lb/cli", "cmd/p4lb/view", "cmd/p4lb/serve", "cmd/p4lb/network", "cmd/p4lb/experiment", "live", "live/web"}

// grpcRooms are the rooms that may name gRPC: everybody else talks to a switch
// through them.
var grpcRooms = []string{"bench", "p4rt", "p4rt/gate", "bfrt/wire", "bfrt/server", "controller", "controller/primary", "controller/target", "controller/embedded", "controller/tofino", "cmd", "soak"}

// TestArchitecture wants every room at the top to be in docs/architecture.md.
func TestArchitecture(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for room := range rooms {
		top, _, _ := strings.Cut(room, "/")
		if top != "." && !strings.Contains(string(text), "`"+top+"`") && !strings.Contains(string(text), "`"+top+"/") {
			t.Errorf("docs/architecture.md does not name %s", top)
		}
	}
}

// TestImports reads every Go file itself, rather than ask the Go tool: so the
// cache of test results knows what the answer depends on.
func TestImports(t *testing.T) {
	for _, f := range goFiles(t) {
		from := "."
		if dir := path.Dir(f); dir != "." {
			from = roomOf(module + "/" + dir)
		}
		if _, ok := rooms[from]; !ok {
			t.Errorf("%s is in no room: add its folder to the table in deps_test.go", f)
			continue
		}
		for _, imp := range imports(t, f) {
			if strings.HasSuffix(f, "_test.go") {
				checkTestImport(t, f, from, imp)
			} else {
				checkImport(t, f, from, imp)
			}
		}
	}
}

// goFiles lists the Go files of the module.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !d.IsDir() && path.Ext(name) == ".go":
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func imports(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, spec := range f.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, imp)
	}
	return list
}

func checkTestImport(t *testing.T, file, from, imp string) {
	if to := roomOf(imp); to != from && from != "cmd" && slices.Contains(shell, to) && !slices.Contains(rooms[from], to) {
		t.Errorf("%s imports %s", file, imp)
	}
}

func checkImport(t *testing.T, file, from, imp string) {
	if strings.HasPrefix(imp, "google.golang.org/grpc") && !slices.Contains(grpcRooms, from) {
		t.Errorf("%s imports %s: gRPC belongs to %s", file, imp, strings.Join(grpcRooms, ", "))
	}
	to := roomOf(imp)
	if to == "" || to == from || to == open || from == "cmd" || slices.Contains(rooms[from], to) {
		return
	}
	t.Errorf("%s imports %s: %s may import only [%s]", file, imp, from, strings.Join(rooms[from], " "))
}

// TestRoomsAcyclic keeps the table itself honest: a circle in it would allow
// any arrow along the circle.
func TestRoomsAcyclic(t *testing.T) {
	done := map[string]bool{}
	var visit func(room string, trail []string)
	visit = func(room string, trail []string) {
		if slices.Contains(trail, room) {
			t.Fatalf("circle in the table: %s", strings.Join(append(trail, room), " -> "))
		}
		if done[room] {
			return
		}
		for _, next := range rooms[room] {
			if _, ok := rooms[next]; !ok {
				t.Errorf("%s may import %s, which is no room", room, next)
			}
			visit(next, append(trail, room))
		}
		done[room] = true
	}
	for room := range rooms {
		visit(room, nil)
	}
}

// roomOf returns the longest room that holds the import path, its first
// folder where it is in none, and "" outside the module.
func roomOf(importPath string) string {
	if importPath == module {
		return "."
	}
	rest, ok := strings.CutPrefix(importPath, module+"/")
	if !ok {
		return ""
	}
	for room := rest; ; {
		if _, ok := rooms[room]; ok {
			return room
		}
		i := strings.LastIndexByte(room, '/')
		if i < 0 {
			return room
		}
		room = room[:i]
	}
}
