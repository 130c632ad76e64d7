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
	// The public Go API.
	".": {"codegen", "internal/scheme", "internal/scheme/own", "internal/bmv2", "internal/dataplane", "internal/p4", "internal/lab", "internal/lab/spec", "internal/network/fabric", "internal/sim"},

	"p4src":     {},
	"templates": {},
	"fitting":   {"internal/text/plain", "internal/student"},
	// Student's t-distribution.
	"internal/student": {},
	// Which p4lb this is.
	"internal/provenance": {},
	// Helpers for slices, which every package may import.
	open: {},
	// Sizes, rates and times, as people write them.
	"internal/text/units":     {},
	"internal/text/message":   {},
	"internal/network/fabric": {"internal/text/units", "internal/text/plain", "internal/text/tree"},
	"internal/bmv2":           {},
	// The Thrift interface of BMv2; its server's side is about a data plane.
	"internal/server/thrift": {"internal/text/plain", "internal/bmv2", "internal/dataplane", "internal/dataplane/hash"},
	"internal/ui/live":       {"internal/server/gate"},
	// The page in a browser.
	"internal/ui/web":          {"internal/ui/live", "internal/lab/chart"},
	"examples":                 {},
	"internal/scheme/manifest": {"internal/text/plain", "internal/text/tree"},
	// The limits of files, checked before a parser reads them.
	"internal/text/plain": {},
	// YAML and JSON as trees with lines, and as Go values.
	"internal/text/tree": {"internal/text/plain"},
	"internal/lab/chart": {},
	// Tests that run p4lb as a process build it here.
	"internal/testbuild": {},
	// Attacks on the binary, from outside.
	"tools/soak": {"internal/bfrt/wire"},
	// Releases, built from a checkout.
	"tools/release": {},
	// The check of prose that make check runs.
	"tools/prose": {},
	// The measurement of tests by mutations.
	"tools/mutation": {},
	// The check of known vulnerabilities that make check runs.
	"tools/vuln": {},
	// The picture of a session in README.
	"tools/docs": {},
	// The documents as HTML.
	"tools/docs/site": {"codegen", "internal/scheme/manifest", "internal/play/page", "internal/play/share"},

	// The playground: its engine, the engine as WebAssembly, its page, its addresses,
	// and its server.
	"internal/play": {
		"codegen", "examples", "internal/bmv2", "internal/controller/pipeline", "internal/controller/plan", "internal/dataplane", "internal/dataplane/hash", "internal/device/ports", "internal/lab", "internal/lab/spec",
		"internal/network/fabric", "internal/p4", "internal/p4/format", "internal/p4/lint", "internal/p4/syntax", "internal/provenance", "internal/scheme", "internal/scheme/own", "internal/text/plain", "templates",
	},
	"internal/play/worker": {"internal/play"},
	"internal/play/page":   {},
	"internal/play/share":  {},
	"internal/ui/play":     {"internal/play", "internal/play/page", "internal/server/gate"},
	// A browser, for tests of pages.
	"internal/ui/browser": {},

	"internal/bfrt": {},
	// BfRt's messages and calls, and its server on the embedded switch.
	"internal/bfrt/wire":   {"internal/text/message"},
	"internal/server/bfrt": {"internal/text/plain", "internal/bfrt", "internal/bfrt/wire", "internal/bmv2", "internal/dataplane", "internal/dataplane/hash", "internal/dataplane/num", "internal/server/p4rt", "internal/server/gate"},

	"internal/scheme/advice": {"fitting", "internal/network/fabric"},
	"internal/scheme/model":  {"fitting"},
	"codegen":                {"internal/text/units", "internal/text/plain", "internal/text/tree", "templates", "fitting", "internal/scheme/manifest", "internal/p4/syntax", "p4src"},
	"internal/dataplane":     {"internal/bmv2", "internal/dataplane/num", "internal/dataplane/hash", "internal/dataplane/lookup", "internal/dataplane/vector", "internal/dataplane/cell", "internal/dataplane/program"},
	// A linked program: the processing of a packet, without ports and queues.
	"internal/dataplane/program": {"internal/bmv2", "internal/dataplane/num", "internal/dataplane/hash", "internal/dataplane/lookup", "internal/dataplane/vector", "internal/dataplane/cell", "internal/dataplane/code", "internal/dataplane/asm"},
	// Numbers of any width; hash algorithms.
	"internal/dataplane/num":  {},
	"internal/dataplane/hash": {"internal/bmv2", "internal/dataplane/num", "internal/dataplane/vector"},
	// The vector of headers and metadata, and expressions over it.
	"internal/dataplane/vector": {"internal/bmv2", "internal/dataplane/num"},
	// Registers, counters, meters, filters.
	"internal/dataplane/cell": {"internal/bmv2", "internal/dataplane/num", "internal/dataplane/vector"},
	// Expressions and assignments as machine code.
	"internal/dataplane/asm":  {},
	"internal/dataplane/code": {"internal/bmv2", "internal/dataplane/num", "internal/dataplane/hash", "internal/dataplane/vector", "internal/dataplane/cell", "internal/dataplane/asm"},
	// The indices of tables.
	"internal/dataplane/lookup": {},
	// Limits on the resources that clients of a server use.
	"internal/server/gate": {},
	"internal/server/p4rt": {"internal/text/message", "internal/text/plain", "internal/server/gate", "internal/dataplane", "internal/dataplane/num", "internal/bmv2"},
	// The ports of a switch: sockets, capture files, AF_XDP.
	"internal/device/ports": {},
	// Observations as files; figures of fits.
	"internal/lab/dataset": {"fitting"},
	"internal/lab/picture": {"fitting", "internal/lab/chart"},
	// Projects and entries in the files of other tools.
	"internal/network/p4app": {"internal/text/plain", "internal/network/fabric", "internal/dataplane", "internal/dataplane/hash", "internal/server/p4rt"},

	// Each stage of the compiler only imports earlier stages.
	"internal/p4/token":  {},
	"internal/p4/syntax": {"internal/p4/token"},
	// The formatter works on tokens. The compiler does not use it.
	"internal/p4/format": {"internal/p4/token", "internal/p4/syntax"},
	"internal/p4/types":  {"internal/text/plain", "internal/p4/syntax"},
	// The control-plane names, shared by lowering and descriptions.
	"internal/p4/names":    {"internal/p4/syntax", "internal/p4/types"},
	"internal/p4/lower":    {"internal/p4/syntax", "internal/p4/types", "internal/p4/names", "internal/bmv2"},
	"internal/p4/describe": {"internal/p4/syntax", "internal/p4/types", "internal/p4/names", "internal/bmv2", "internal/bfrt"},
	"internal/p4/lint":     {"internal/p4/syntax", "internal/p4/types"},
	"internal/p4":          {"internal/p4/syntax", "internal/p4/types", "internal/p4/lower", "internal/p4/describe", "internal/bmv2", "internal/bfrt", "p4src"},
	"internal/p4/p4test":   {"internal/p4/syntax", "internal/p4/types", "p4src"}, // for tests

	// The one way from a scheme's name to programs.
	"internal/scheme": {"internal/scheme/manifest", "codegen", "internal/p4", "internal/p4/format", "internal/p4/syntax", "internal/text/plain"},

	// Users' programs as schemes.
	"internal/scheme/own": {"internal/scheme", "internal/scheme/manifest", "codegen", "internal/bmv2", "internal/p4", "internal/p4/syntax", "internal/text/plain"},

	"tools/conformance": {"internal/p4/syntax"},

	// p4lb against an evaluator of P4 source, which imports nothing of p4lb.
	"tools/differential":                    {"tools/differential/internal/generator", "tools/differential/internal/source", "internal/p4", "internal/bmv2", "internal/dataplane", "internal/dataplane/asm"},
	"tools/differential/internal/generator": {"tools/differential/internal/source"},
	"tools/differential/internal/source":    {},

	// A generated program as a single leaf, and the parts of a controller:
	// programs by P4Runtime ids, plans, decoded registers, access to switches,
	// readings, tasks.
	"internal/scheme/leaf":          {"codegen", "internal/scheme/manifest", "internal/scheme", "internal/dataplane", "fitting"},
	"internal/controller/p4info":    {"internal/scheme/manifest"},
	"internal/controller/plan":      {"internal/controller/p4info", "internal/network/fabric", "internal/scheme/manifest"},
	"internal/controller/registers": {"internal/scheme/manifest", "internal/bmv2"},
	"internal/controller/target":    {"internal/controller/plan", "internal/controller/registers", "internal/network/fabric", "internal/bmv2", "internal/server/thrift"},
	"internal/controller/pipeline":  {"internal/scheme/manifest", "internal/controller/plan", "internal/network/fabric", "codegen", "internal/scheme"},
	"internal/controller/inspect":   {"internal/lab/dataset", "internal/text/plain", "internal/controller/plan", "internal/controller/registers", "internal/network/fabric", "internal/scheme/manifest", "fitting", "internal/bmv2"},
	"internal/controller/task":      {"internal/controller/plan", "internal/controller/registers", "internal/network/fabric", "internal/scheme/manifest", "fitting"},
	// The result of a deployment.
	"internal/controller/report": {"internal/controller/plan"},
	// The stream to a switch, and the election of its primary.
	"internal/controller/primary": {"internal/controller/plan", "internal/controller/target", "internal/text/plain"},
	// The note that a deployment leaves for others on the machine.
	"internal/controller/deployed": {"internal/controller/plan", "internal/controller/target", "internal/network/fabric", "internal/scheme/manifest", "internal/text/plain"},
	"controller": {
		"internal/controller/primary", "internal/controller/report", "internal/controller/p4info", "internal/controller/plan", "internal/controller/registers", "internal/controller/target", "internal/controller/inspect", "internal/controller/task",
		"internal/network/fabric", "internal/scheme/manifest", "internal/bmv2",
	},
	// The target that runs the switches in the process itself.
	"internal/network/embedded": {"internal/network/ping", "internal/device/ports", "internal/server/bfrt", "internal/controller/tofino", "internal/scheme/manifest", "internal/controller/plan", "internal/controller/registers", "internal/controller/target", "internal/network/fabric", "internal/bmv2", "internal/server/thrift", "internal/dataplane", "internal/server/p4rt", "internal/server/gate"},
	// The target of switches with Intel's SDE, and BfRt in P4Runtime's place.
	"internal/controller/tofino": {"internal/network/fabric", "internal/controller/p4info", "internal/controller/plan", "internal/controller/registers", "internal/controller/target", "internal/bfrt", "internal/bfrt/wire", "internal/bmv2", "internal/scheme/manifest", "internal/text/plain"},
	// The target that runs BMv2 in network namespaces.
	"internal/network/testbed": {"internal/controller/plan", "internal/controller/target", "internal/network/netspace", "internal/network/fabric", "internal/scheme/manifest"},
	// Network namespaces, and hosts in them for switches in this process.
	"internal/network/netspace": {"internal/network/fabric"},
	"internal/network/hosts":    {"internal/device/ports", "internal/network/netspace", "internal/network/fabric", "internal/server/p4rt"},
	// Echo requests between hosts.
	"internal/network/ping": {"internal/network/fabric"},
	// Flows between hosts by the kernel's TCP.
	"internal/network/traffic": {},

	"internal/sim": {"internal/dataplane", "internal/dataplane/asm", "internal/network/fabric", "internal/scheme/model"},
	// Results under digests, where many processes on many machines find them.
	"internal/lab/store": {"internal/text/plain"},
	// Schedulers that run the shards of an experiment.
	"internal/lab/cluster": {},
	// The definition of an experiment, and models instead of programs.
	"internal/lab/spec":   {"internal/text/tree", "internal/scheme/advice", "codegen", "internal/controller/plan", "internal/network/fabric", "fitting", "internal/text/plain", "internal/scheme", "internal/sim", "internal/student", "internal/text/units"},
	"internal/lab/native": {"codegen", "internal/controller/plan", "fitting", "internal/scheme/manifest", "internal/scheme/model", "internal/sim"},
	"internal/lab": {
		"internal/server/thrift", "internal/network/p4app", "internal/controller/tofino",
		"internal/play/share", "internal/server/gate", "internal/p4/describe",
		"internal/device/ports", "internal/lab/spec", "internal/lab/native",
		"internal/provenance", "internal/student",
		"internal/controller/pipeline",
		"internal/text/units",
		"internal/scheme/advice", "internal/lab/chart",
		"p4src", "templates", "fitting", "internal/text/plain", "internal/network/fabric", "internal/bmv2", "internal/scheme/manifest", "internal/scheme/model", "codegen", "internal/scheme", "internal/dataplane", "internal/server/p4rt",
		"internal/p4/syntax", "internal/p4/types", "internal/p4/lower", "internal/p4", "controller", "internal/network/embedded", "internal/sim",
		"internal/controller/plan", "internal/controller/registers", "internal/controller/target", "internal/controller/inspect", "internal/controller/task",
		"internal/network/hosts", "internal/network/testbed", "internal/network/traffic", "internal/lab/store",
	},
	// What p4lb measures of itself.
	"tools/bench": {
		"internal/lab/dataset", "internal/device/ports", "internal/bfrt", "internal/server/bfrt", "internal/bfrt/wire", "internal/bmv2", "codegen", "controller", "internal/controller/deployed", "internal/network/embedded", "internal/controller/inspect", "internal/network/netspace", "internal/controller/plan",
		"internal/controller/pipeline", "internal/controller/registers", "internal/controller/target", "internal/dataplane", "examples", "internal/network/fabric", "fitting", "internal/scheme/leaf",
		"internal/lab", "internal/lab/native", "internal/scheme/manifest", "internal/scheme/model", "internal/p4", "internal/p4/syntax", "internal/p4/types", "internal/server/p4rt", "p4src", "internal/scheme", "internal/sim", "internal/lab/store",
	},
	// What verbs share, and the verbs in groups; the others are the command's own.
	"cmd/p4lb/internal/cli":   {"internal/text/tree", "internal/bmv2", "codegen", "internal/controller/inspect", "internal/dataplane", "internal/network/fabric", "fitting", "internal/lab/spec", "internal/scheme/manifest", "internal/scheme/own", "internal/p4", "internal/p4/syntax", "internal/network/p4app", "internal/text/plain", "internal/provenance", "internal/scheme", "internal/text/units"},
	"cmd/p4lb/internal/view":  {"cmd/p4lb/internal/cli", "controller", "internal/controller/inspect", "internal/controller/plan", "internal/network/fabric", "internal/ui/live", "internal/ui/web", "internal/text/plain"},
	"cmd/p4lb/internal/serve": {"internal/device/ports", "cmd/p4lb/internal/cli", "internal/server/bfrt", "internal/bmv2", "internal/server/thrift", "internal/dataplane", "internal/network/fabric", "internal/p4", "internal/network/p4app", "internal/server/p4rt", "internal/server/gate", "internal/text/plain"},
	"cmd/p4lb/internal/network": {
		"internal/bmv2", "internal/device/ports", "internal/network/ping", "cmd/p4lb/internal/cli", "cmd/p4lb/internal/view", "internal/server/thrift", "codegen", "controller", "internal/controller/deployed", "internal/network/embedded", "internal/network/hosts", "internal/controller/inspect",
		"internal/network/netspace", "internal/controller/pipeline", "internal/controller/plan", "internal/controller/primary", "internal/controller/registers", "internal/controller/report", "internal/controller/target", "internal/controller/task", "internal/controller/tofino",
		"internal/network/testbed", "internal/network/traffic", "internal/dataplane", "internal/dataplane/hash", "internal/network/fabric", "internal/lab", "internal/lab/spec", "internal/ui/live", "internal/scheme/manifest", "internal/scheme/own", "internal/p4", "internal/network/p4app", "internal/server/p4rt", "internal/text/plain",
	},
	"cmd/p4lb/internal/experiment": {
		"cmd/p4lb/internal/cli", "cmd/p4lb/internal/view", "internal/lab/cluster", "codegen", "internal/network/hosts", "internal/controller/inspect", "internal/dataplane", "internal/lab", "internal/lab/spec", "internal/ui/live", "internal/ui/web",
		"internal/text/plain", "internal/provenance", "internal/lab/store",
	},
	"cmd": nil, // the command imports everything
}

// open is the room that all others may import.
const open = "internal/text/lists"

// shell lists the packages that only cmd may import, tests included.
var shell = []string{"cmd", "cmd/p4lb/internal/cli", "cmd/p4lb/internal/view", "cmd/p4lb/internal/serve", "cmd/p4lb/internal/network", "cmd/p4lb/internal/experiment", "internal/ui/live", "internal/ui/web", "internal/ui/play"}

// grpcRooms lists the packages that may import gRPC. Others reach switches through
// them.
var grpcRooms = []string{"tools/bench", "internal/server/p4rt", "internal/server/gate", "internal/bfrt/wire", "internal/server/bfrt", "controller", "internal/controller/primary", "internal/controller/target", "internal/network/embedded", "internal/controller/tofino", "cmd", "tools/soak"}

// TestArchitecture checks that docs/architecture.md names every room: by its
// folder at the root, or by two folders below internal and tools.
func TestArchitecture(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for room := range rooms {
		name, rest, _ := strings.Cut(room, "/")
		if name == "internal" || name == "tools" {
			next, _, _ := strings.Cut(rest, "/")
			name += "/" + next
		}
		if name != "." && !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`"+name+"/") {
			t.Errorf("docs/architecture.md does not name %s", name)
		}
	}
}

// TestImports parses every Go file instead of running the Go tool, so that the cache
// of test results knows its inputs.
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
