package main

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// staying is a process of p4lb deploy that keeps its switches up.
type staying struct {
	t   *testing.T
	cmd *exec.Cmd
	log *bufio.Reader
	out bytes.Buffer
}

// stay starts p4lb deploy in a folder and waits until it has deployed the
// switches.
func stay(t *testing.T, dir string, args ...string) *staying {
	t.Helper()
	s := &staying{t: t, cmd: exec.Command("p4lb", append([]string{"deploy", "--any-port"}, args...)...)}
	s.cmd.Dir, s.cmd.Stdout = dir, &s.out
	log, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.log = bufio.NewReader(log)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	s.wait("keeping the switches as planned")
	return s
}

// wait reads messages until one contains text.
func (s *staying) wait(text string) string {
	s.t.Helper()
	var all strings.Builder
	for {
		line, err := s.log.ReadString('\n')
		all.WriteString(line)
		if strings.Contains(line, text) {
			return all.String()
		}
		if err != nil {
			s.t.Fatalf("%q never comes: %s", text, &all)
		}
	}
}

// end interrupts the process and checks its exit.
func (s *staying) end() {
	s.t.Helper()
	s.cmd.Process.Signal(os.Interrupt)
	rest := new(bytes.Buffer)
	rest.ReadFrom(s.log)
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("p4lb deploy ended with %v: %s", err, rest)
	}
}

// stateOf returns the name of the state file of a folder's deployment.
func stateOf(t *testing.T, dir string) string {
	t.Helper()
	state, err := deployed.StateOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func p4lb(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("p4lb", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("p4lb %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestDeployAgain deploys twice. The second deploy sends its request to the
// process that runs the network, writes only the differences and leaves no process.
// Failed links follow the plan, and --diff compares links as well.
func TestDeployAgain(t *testing.T) {
	dir := t.TempDir()
	first := stay(t, dir, "--scheme", "hula", "--topology", "qall")
	state := stateOf(t, dir)
	d, _, err := deployed.Read(state)
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := deployed.Owner(state); err != nil || pid != first.cmd.Process.Pid {
		t.Errorf("process %d owns the deployment, want %d: %v", pid, first.cmd.Process.Pid, err)
	}
	if !d.Kept || d.Target != "embedded" || len(d.Switches) != 4 || d.Scheme != "hula" || !d.ByLeaf {
		t.Errorf("the note is %+v", d)
	}
	again := []string{"deploy", "--scheme", "hula", "--topology", "qall", "--once"}
	if out := p4lb(t, dir, append(again, "--diff")...); !strings.Contains(out, "nothing differs") {
		t.Errorf("the switches differ from the plan: %s", out)
	}
	if out := p4lb(t, dir, again...); !strings.Contains(out, " 0 changes written") {
		t.Errorf("the second deploy writes: %s", out)
	}
	// Without --once a second deploy would stay, if it did not hand over.
	failed := []string{"deploy", "--scheme", "hula", "--topology", "qall", "--fail", "l1-s1"}
	if out := p4lb(t, dir, failed...); !regexp.MustCompile(` [1-9]\d* changes written`).MatchString(out) {
		t.Errorf("a failed link changes nothing: %s", out)
	}
	if out := p4lb(t, dir, append(failed, "--diff")...); !strings.Contains(out, "nothing differs") {
		t.Errorf("the network differs from what was deployed: %s", out)
	}
	if out := p4lb(t, dir, append(again, "--diff")...); strings.Count(out, "link l1:") != 2 || !strings.Contains(out, "down") {
		t.Errorf("two links are down, and --diff prints %s", out)
	}
	if out := p4lb(t, dir, "ping", "h1", "h17"); !strings.Contains(out, "l1-s2-l2") {
		t.Errorf("not around the failed link: %s", out)
	}
	if out := p4lb(t, dir, again...); !strings.Contains(out, "packets pass between 8 of 8 pairs") {
		t.Errorf("the links are not up again: %s", out)
	}
	if out := p4lb(t, dir, append(again, "--diff")...); !strings.Contains(out, "nothing differs") {
		t.Errorf("the links are not as planned: %s", out)
	}
	if out := p4lb(t, dir, "deploy", "--scheme", "ecmp", "--topology", "qall", "--detach"); !strings.Contains(out, "4 switches verified") {
		t.Errorf("another scheme: %s", out)
	}
	if pid, err := deployed.Owner(state); err != nil || pid != first.cmd.Process.Pid {
		t.Errorf("process %d owns the network now: %v", pid, err)
	}
	other := exec.Command("p4lb", "deploy", "--scheme", "ecmp", "--topology", "p4-tutorial")
	if out, err := func() ([]byte, error) { other.Dir = dir; return other.CombinedOutput() }(); err == nil {
		t.Errorf("another topology is deployed: %s", out)
	}
	first.end()
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Errorf("the note is still there: %v", err)
	}
	if !strings.Contains(first.out.String(), "4 switches verified") {
		t.Errorf("the output was %s", &first.out)
	}
}

// TestDeployReload sends SIGHUP to a process of deploy, which must read its
// topology again.
func TestDeployReload(t *testing.T) {
	dir := t.TempDir()
	write := func(down string) {
		text := p4lb(t, dir, "topo", "leaf-spine", "--leaves", "2", "--spines", "2")
		text = strings.Replace(text, "ends: [l1:3, s1:1],", "ends: [l1:3, s1:1], "+down, 1)
		if err := os.WriteFile(filepath.Join(dir, "net.yaml"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	s := stay(t, dir, "--scheme", "ecmp", "--topology", "net.yaml")
	s.cmd.Process.Signal(syscall.SIGHUP)
	if line := s.wait("deployed again"); !strings.Contains(line, "written=0 verified=true") {
		t.Errorf("the same topology: %s", line)
	}
	write("down: true,")
	s.cmd.Process.Signal(syscall.SIGHUP)
	if line := s.wait("deployed again"); strings.Contains(line, "written=0") || !strings.Contains(line, "verified=true") {
		t.Errorf("a link less: %s", line)
	}
	if err := os.WriteFile(filepath.Join(dir, "net.yaml"), []byte("switches: 7\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	s.cmd.Process.Signal(syscall.SIGHUP)
	s.wait("error:")
	s.end()
}

// TestAddressesTaken deploys to an address in use. The error names the address
// in one line with a hint, and deploy creates nothing.
func TestAddressesTaken(t *testing.T) {
	topology, err := fabric.LeafSpine{Leaves: 2, Spines: 1, Hosts: 1}.Make()
	if err != nil {
		t.Fatal(err)
	}
	for i := range topology.Switches {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		topology.Switches[i].GRPC = l.Addr().String()
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "taken.yaml")
	if err := os.WriteFile(file, topology.YAML(), 0o666); err != nil {
		t.Fatal(err)
	}
	var out, errs syncBuffer
	state := filepath.Join(dir, "deployed.json")
	code := run(t.Context(), []string{"deploy", "--scheme", "ecmp", "--topology", file, "--state", state, "-q"}, strings.NewReader(""), &out, &errs)
	first := topology.Switches[0].GRPC + " (l1), "
	if said := errs.String(); code != cli.ExitRefused || strings.Count(said, "error:") != 1 || strings.Count(said, "\n") != 2 ||
		!strings.Contains(said, first) || !strings.Contains(said, "hint: --any-port takes free ones") {
		t.Errorf("exit code %d, errors %q", code, said)
	}
	if _, err := os.Stat(state); err == nil || out.String() != "" {
		t.Errorf("there is a note all the same, and output %q", out.String())
	}
}
