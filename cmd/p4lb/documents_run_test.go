package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// documents returns the names of README and docs files with commands to run.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(files, "../../README.md", "../../docs/session.txt")
}

// smaller lists flags that make a documented command shorter for the test. The
// first matching rule applies.
var smaller = []struct{ command, with string }{
	{`^lab paper `, "--recorded"},                  // recorded results, without runs
	{`^lab submit `, "--dry-run --partition test"}, // prints the script without submitting it
	{`^lab .*--observe`, "--duration 50ms --every 200us --seeds 1 --engine native"},
	{`^lab .*--scheme`, "--topology qdaps-4 --duration 5ms --seeds 2 --cut 20KB"},
	{`^lab run examples/demo`, "--seeds 1 --engine native"},
	{`^lab run`, "--seeds 1"},
	{`^deploy .*(--once|--dry-run|--diff)`, "--any-port"},
	{`^deploy `, "--any-port --detach"}, // the next deploy, or the end, removes it
	{`^inspect .*--watch`, "--for 50ms"},
	{`^exec .* ping `, "-c 1"},
	{`^traffic `, "--duration 50ms --seeds 1 --cut 20KB"},
	{`^bench`, "--help"}, // TestScripts/bench checks the figures
}

// without lists commands that the test skips, with the reasons.
var without = []struct{ command, why string }{
	{`--target (tofino|p4runtime)`, "requires switches at the addresses of the topology: TestScripts/deploy"},
	{`--target bmv2`, "requires root and simple_switch_grpc"},
	{`--on .*bmv2`, "requires root and simple_switch_grpc"},
	{`^lab .*--serve`, "it waits for a controller: TestServe in package lab"},
	{`--listen-wait`, "it waits for a browser: TestCollectivePage in package web"},
	{`^lab (status|wait|report|cancel)`, "requires the jobs of a cluster: TestScripts/lab_store has them"},
	{`^lab run .*--store /shared`, "requires a file system that nodes share: TestScripts/lab_store"},
	{`^results .*(demo|--store)`, "demo and the digests stand for the reader's own: TestScripts/lab_store"},
	{`^switch `, "it runs until an interrupt: TestScripts/switch"},
	{`iperf3`, "iperf3 is optional"},
	{`--p4app`, "requires a checkout of the P4 tutorials: package p4app has its tests"},
	{`tutorials/|basic\.|load_balance|flowlet_switching|congestion|(two|four)\.yaml --any`, "requires a checkout of the P4 tutorials"},
	{`^cd exercises`, "requires a checkout of the P4 tutorials"},
	{`^topo ports`, "requires a switch that serves BfRt: TestBfRtFrontPanel in package embedded"},
	{`^resources`, "requires p4c with its backend for Tofino: TestScripts/resources"},
	{`^lab submit .*s3://`, "requires keys of S3: packages store and cluster have servers for their tests"},
	{`^manifest init mine`, "mine.p4 stands for a program that has none: TestScripts/own"},
	{`conweave-p4/`, "requires a checkout of conweave-p4"},
	{`open-p4studio|p4studio/p4studio|create-setup-script|setup-open|run_switchd|^bfshell|pm show`, "requires the SDE"},
	{`^p4c `, "requires p4c"},
	{`^conformance`, "requires a checkout of p4c: TestScripts/conformance"},
	{`clos\.clab`, "the file stands for the reader's own: TestScripts/topo"},
	{`-i \d@`, "requires interfaces"},
	{`S --topology T\.yaml`, "S and T.yaml stand for the reader's own"},
}

// given lists preparatory commands for a document.
var given = map[string]string{
	"manifest.md": "p4lb new mine\ncd mine\n",
	"cluster.md":  "cp examples/demo.yaml experiment.yaml\n",
}

// TestCommands runs the commands in README and docs. Each document has a folder,
// where its commands run in order. Files in a document under <!-- file NAME --> are in that
// folder.
func TestCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred processes")
	}
	dir := t.TempDir()
	ran := 0
	for _, name := range documents(t) {
		script, n := scriptOf(t, name)
		ran += n
		to := filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))+".txt")
		if err := os.WriteFile(to, []byte(script), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if ran < 40 {
		t.Errorf("%d commands are run: the test does not see them", ran)
	}
	p := scripts()
	p.Dir = dir
	setup := p.Setup
	p.Setup = func(env *testscript.Env) error {
		for _, room := range []string{"examples", "p4src"} {
			from, err := filepath.Abs("../../" + room)
			if err == nil {
				err = os.Symlink(from, filepath.Join(env.WorkDir, room))
			}
			if err != nil {
				return err
			}
		}
		return setup(env)
	}
	testscript.Run(t, p)
}

// scriptOf converts a document to a script, and counts its commands.
func scriptOf(t *testing.T, name string) (script string, n int) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var b, files strings.Builder
	b.WriteString(given[filepath.Base(name)])
	up := false
	down := func() {
		if up {
			b.WriteString("[namespaces] p4lb down\n")
		}
		up = false
	}
	fenced, file := filepath.Ext(name) != ".md", ""
	for at, line := range strings.Split(string(text), "\n") {
		if m := shownFile().FindStringSubmatch(line); m != nil {
			file = m[1]
			fmt.Fprintf(&files, "-- %s --\n", file)
		}
		if strings.HasPrefix(line, "```") {
			if fenced = !fenced; !fenced {
				file = ""
			}
			continue
		}
		code, indented := strings.CutPrefix(line, "    ")
		if file != "" && (fenced || indented) {
			files.WriteString(map[bool]string{true: line, false: code}[fenced] + "\n")
			continue
		}
		if file != "" && line != "" && !strings.HasPrefix(line, "<!--") {
			file = "" // prose ends the block
		}
		if !fenced && !indented {
			continue
		}
		code = strings.TrimSpace(line)
		if (strings.HasPrefix(code, "sed -i ") || strings.HasPrefix(code, "cp ")) && notRun(code) == "" {
			b.WriteString("exec " + code + "\n")
		}
		if strings.HasPrefix(code, "cd ") && notRun(code) == "" {
			down() // the state of the deployment is in this folder
			b.WriteString(code + "\n")
		}
		for _, command := range commandsOf(code) {
			verb := strings.TrimPrefix(command, "p4lb ")
			fmt.Fprintf(&b, "# %s:%d: %s\n", filepath.Base(name), at+1, command)
			first, _, _ := strings.Cut(verb, " ")
			if first == "deploy" {
				down()
			}
			if why := notRun(verb); why != "" {
				fmt.Fprintf(&b, "# not run: %s\n", why)
				continue
			}
			if i := slices.IndexFunc(smaller, func(r struct{ command, with string }) bool { return matches(r.command, verb) }); i >= 0 {
				command += " " + smaller[i].with
			}
			condition := ""
			switch {
			case first == "deploy":
				if up = strings.Contains(command, "--detach"); up {
					fmt.Fprintf(&b, "[!namespaces] %s\n", strings.ReplaceAll(command, "--detach", "--once"))
					condition = "[namespaces] "
				}
			case slices.Contains([]string{"exec", "hosts", "traffic", "down", "inspect", "register", "observe"}, first) && !strings.Contains(verb, "--replay"):
				if !up {
					b.WriteString("# not run: its network was not deployed\n")
					continue
				}
				condition = "[namespaces] "
				if strings.Contains(command, " ping ") {
					condition += "[exec:ping] "
				}
				up = first != "down"
			}
			n++
			fmt.Fprintf(&b, "%s%s\n", condition, command)
		}
	}
	down()
	return b.String() + files.String(), n
}

// notRun returns the reason for skipping a command, or "".
func notRun(command string) string {
	for _, r := range without {
		if matches(r.command, command) {
			return r.why
		}
	}
	return ""
}

// shownFile matches the line above a file in a document.
func shownFile() *regexp.Regexp { return regexp.MustCompile(`^<!-- file (\S+) -->$`) }

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }
