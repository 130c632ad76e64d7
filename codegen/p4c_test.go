package codegen_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/p4lb/p4lb/codegen"
)

// p4cRecord contains p4c's results for each program.
const p4cRecord = "../testdata/oracle/p4c-rows.tsv"

// p4cHead explains the record; the version of p4c follows.
const p4cHead = `# The programs that these arguments of p4lb gen give, compiled by p4c for BMv2.
# The digest is of the program's text without comments and empty lines: whatever else changes
# makes the line stale.
# P4C="p4c-bm2-ss --std p4-16 -I p4c/p4include" go test ./codegen -run P4c -timeout 2h
# compiles the stale ones and records the results: ok is no error and no warning,
# stale is a program that has changed since (P4C=stale records that without p4c).
`

// stale marks a program that has changed since p4c compiled it.
const stale = "stale"

// A p4cLine is a line of the record, by the arguments.
type p4cLine struct{ lines, digest, result string }

// TestP4cRecord compares the record of p4c's results with the present programs: the
// record contains all of them, and p4c accepted each without a warning.
func TestP4cRecord(t *testing.T) {
	command := strings.Fields(os.Getenv("P4C"))
	if testing.Short() && len(command) == 0 {
		t.Skip("generates every form of every program; the test without -short does")
	}
	text, err := os.ReadFile(p4cRecord)
	if err != nil && len(command) == 0 {
		t.Fatal(err)
	}
	record, today := readP4cRecord(t, string(text)), p4cPrograms(t)
	if len(command) > 0 {
		record = runP4c(t, command, record, today)
	}
	waiting := 0
	for args, program := range today {
		switch got := record[args]; {
		case got.result == "":
			t.Errorf("p4lb gen %s: not in the record", args)
		case got.digest != digest(program):
			t.Errorf("p4lb gen %s: the program is no longer what p4c compiled", args)
		case got.result == stale:
			waiting++
		case got.result != "ok":
			t.Errorf("p4lb gen %s: p4c: %s", args, got.result)
		}
	}
	if waiting > 0 {
		t.Logf("%d of %d programs have changed since p4c compiled them", waiting, len(today))
	}
	for args := range record {
		if today[args] == "" {
			t.Errorf("p4lb gen %s: in the record, but no longer a program of its own", args)
		}
	}
}

// digest identifies the text of a program without comments and empty lines.
func digest(text string) string {
	code := blankLines.ReplaceAllString(p4Comment.ReplaceAllString(text, ""), "\n")
	return fmt.Sprintf("%x", sha256.Sum256([]byte(code)))[:16]
}

var (
	p4Comment  = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	blankLines = regexp.MustCompile(`\s*\n`)
)

// p4cPrograms returns the program texts by the arguments that generate them: each
// scheme at each size, and variants by role, state path, run-time coefficients and
// printed errata; the others under RLB too.
func p4cPrograms(t *testing.T) map[string]string {
	t.Helper()
	list, seen := map[string]string{}, map[string]bool{}
	add := func(name string, p codegen.Params, options string) {
		row, err := codegen.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		program, err := codegen.Generate(row, p)
		if err != nil && options != "" {
			return // the option is not for this row
		}
		if err != nil {
			t.Fatal(err)
		}
		text := reformat(t, program)
		if key := name + text; !seen[key] {
			seen[key] = true
			list[fmt.Sprintf("--scheme %s --ports %d%s", name, p.Ports, options)] = text
		}
	}
	for _, name := range codegen.Names() {
		for _, n := range []int{2, 4, 8, codegen.MaxPaths} {
			add(name, codegen.Params{Ports: n}, "")
		}
		for _, n := range []int{4, codegen.MaxPaths} {
			add(name, codegen.Params{Ports: n, StatePath: "shared"}, " --state-path shared")
			add(name, codegen.Params{Ports: n, Runtime: true}, " --coeffs runtime")
		}
		for _, role := range codegen.Roles {
			add(name, codegen.Params{Ports: 4, Role: role}, " --role "+role)
		}
		add(name, codegen.Params{Ports: 4, Printed: true}, " --errata printed")
		if !strings.Contains(name, "+") {
			for _, guard := range []string{"+rlb", "+rlb-star"} {
				add(name+guard, codegen.Params{Ports: 4}, "")
			}
		}
	}
	for _, f := range rlbForms {
		set := strings.SplitN(f.set, "=", 2)
		add(f.scheme, codegen.Params{Ports: 4, Set: map[string]string{set[0]: set[1]}}, " --set "+f.set)
	}
	return list
}

func readP4cRecord(t *testing.T, text string) map[string]p4cLine {
	t.Helper()
	record := map[string]p4cLine{}
	for args, columns := range readTable(t, text, 4) {
		record[args] = p4cLine{columns[0], columns[1], columns[2]}
	}
	return record
}

// readTable reads a record: rows by their first column, under a row of titles;
// # begins a comment.
func readTable(t *testing.T, text string, columns int) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	titles := true
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case len(f) != columns:
			t.Fatalf("%d columns in %q", len(f), line)
		case titles:
			titles = false
		default:
			rows[f[0]] = f[1:]
		}
	}
	return rows
}

// runP4c compiles the programs that are missing in the record or have changed, and
// rewrites the record.
func runP4c(t *testing.T, command []string, record map[string]p4cLine, today map[string]string) map[string]p4cLine {
	t.Helper()
	head := p4cHead + p4cVersion(t, command[0]) + "\narguments\tlines\tdigest\tresult\n"
	fresh := map[string]p4cLine{}
	var changed []string
	for _, args := range slices.Sorted(maps.Keys(today)) {
		if line := record[args]; line.digest == digest(today[args]) && line.result == "ok" {
			fresh[args] = line
		} else {
			changed = append(changed, args)
		}
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	slots := make(chan struct{}, 4*runtime.GOMAXPROCS(0))
	for _, args := range changed {
		slots <- struct{}{}
		work.Go(func() {
			program := today[args]
			line := p4cLine{fmt.Sprint(strings.Count(program, "\n")), digest(program), stale}
			if command[0] != stale {
				line.result = p4c(t, command, program)
			}
			mu.Lock()
			defer mu.Unlock()
			fresh[args] = line
			writeP4cRecord(t, head, fresh) // an interrupted test continues from here
			<-slots
		})
	}
	work.Wait()
	writeP4cRecord(t, head, fresh)
	return fresh
}

// p4cVersion returns the line of the record that names the compiler; without one, the
// line as it stands.
func p4cVersion(t *testing.T, command string) string {
	t.Helper()
	if command != stale {
		version, err := exec.Command(command, "--version").CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		return "# p4c" + strings.TrimPrefix(strings.Join(strings.Fields(string(version)), " "), command)
	}
	text, err := os.ReadFile(p4cRecord)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "# p4c") {
			return strings.TrimSuffix(line, "\n")
		}
	}
	t.Fatalf("%s names no compiler", p4cRecord)
	return ""
}

func writeP4cRecord(t *testing.T, head string, record map[string]p4cLine) {
	t.Helper()
	var b strings.Builder
	b.WriteString(head)
	for _, args := range slices.Sorted(maps.Keys(record)) {
		l := record[args]
		fmt.Fprintln(&b, strings.Join([]string{args, l.lines, l.digest, l.result}, "\t"))
	}
	if err := os.WriteFile(p4cRecord, []byte(b.String()), 0o644); err != nil {
		t.Error(err)
	}
}

// p4c compiles a program and returns "ok" or the first line of the output.
func p4c(t *testing.T, command []string, program string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program.p4")
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		return err.Error()
	}
	args := append(slices.Clone(command[1:]), "-o", strings.TrimSuffix(file, ".p4")+".json", file)
	said, err := exec.Command(command[0], args...).CombinedOutput()
	first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	switch {
	case first != "":
		return strings.ReplaceAll(first, "\t", " ")
	case err != nil:
		return err.Error()
	}
	return "ok"
}
