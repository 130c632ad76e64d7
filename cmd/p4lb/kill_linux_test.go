package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	kills    = flag.Int("kills", 4, "how many networks TestKills ends")
	killSeed = flag.Uint64("kill-seed", 1, "which of the moments")
)

// killInside marks the process of the test that runs in its own namespaces.
const killInside = "P4LB_TEST_KILLS_INSIDE"

// TestKills kills networks at random moments drawn from a seed: the process
// that keeps a network, by any signal; the first process of its hosts; or a
// shell on a host. Then it counts leftover processes, interfaces, mounts and
// files. It runs in separate namespaces, where nothing else exists.
func TestKills(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes, which the race detector does not see")
	}
	if os.Getenv(killInside) != "" {
		killNetworks(t)
		return
	}
	if exec.Command("unshare", "-Urnmp", "--fork", "--mount-proc", "true").Run() != nil {
		t.Skip("namespaces of its own want a user namespace, or root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-Urnmp", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", `"$@"; exit $?`, "sh", // as the first process, sh reaps orphans
		self, "-test.run", "^TestKills$", "-test.v", "-kills", strconv.Itoa(*kills), "-kill-seed", strconv.FormatUint(*killSeed, 10))
	cmd.Env = append(os.Environ(), killInside+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestKills")) {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// killNetworks is the part of the test inside the namespaces.
func killNetworks(t *testing.T) {
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Skipf("ip is missing: %v %s", err, out)
	}
	random := rand.New(rand.NewPCG(*killSeed, 0))
	before := leftOf(t)
	for n := range *kills {
		dir := t.TempDir()
		how := killOne(t, random, dir)
		for deadline := time.Now().Add(3 * time.Minute); ; {
			left := leftOf(t)
			if slices.Equal(left, before) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("network %d, %s: there is left\n%s\nbefore it was\n%s", n, how, strings.Join(left, "\n"), strings.Join(before, "\n"))
			}
			time.Sleep(10 * time.Millisecond) // until the kernel has finished
		}
		// A killed process leaves its state file. The next command removes it.
		started(dir, "hosts").Run()
		if files, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "p4lb", "*")); err != nil || len(files) > 0 {
			t.Fatalf("network %d, %s: there are files left: %v %v", n, how, files, err)
		}
	}
}

// started returns a command of this program.
func started(dir string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Args[0], cmd.Dir = "p4lb", dir
	return cmd
}

// killOne brings up a network, kills it, and returns how.
func killOne(t *testing.T, random *rand.Rand, dir string) string {
	t.Helper()
	deploy := started(dir, "deploy", "--scheme", "ecmp", "--topology", "qall", "--any-port")
	var said syncBuffer
	deploy.Stdout, deploy.Stderr = &said, &said
	if err := deploy.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		deploy.Wait()
	}()
	end := func(s syscall.Signal) {
		deploy.Process.Signal(s)
		<-ended
	}
	signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT}
	s := signals[random.IntN(len(signals))]
	if random.IntN(3) == 0 { // during deployment
		after := time.Duration(random.IntN(600)) * time.Millisecond
		time.Sleep(after)
		end(s)
		return fmt.Sprintf("%v after %v", s, after)
	}
	for !strings.Contains(said.String(), "keeping the switches") {
		select {
		case <-ended:
			t.Fatalf("deploy has ended: %s", said.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	host := "h" + strconv.Itoa(1+random.IntN(32))
	shell := started(dir, "exec", host, "--", "sh", "-c", "sleep 1000 & setsid sleep 1000 & echo up; wait")
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	out.Read(make([]byte, 3))
	how := fmt.Sprintf("%v, with a shell on %s", s, host)
	if random.IntN(2) == 0 {
		shell.Process.Kill()
		how += ", that was killed before"
		if text, err := started(dir, "exec", "h1", "--", "true").CombinedOutput(); err != nil {
			t.Fatalf("%s: the network is gone with it: %s", how, text)
		}
	}
	if random.IntN(3) == 0 { // the first process of the hosts, or all
		for _, pid := range childrenOf(deploy.Process.Pid) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		how += ", after the processes of the hosts"
	}
	end(s)
	shell.Wait()
	return how
}

// childrenOf returns the children of a process.
func childrenOf(parent int) (list []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			list = append(list, pid)
		}
	}
	return list
}

// leftOf lists processes, interfaces, network namespaces and mounts.
func leftOf(t *testing.T) (list []string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range processes {
		if text, err := os.ReadFile(file); err == nil {
			list = append(list, "process "+filepath.Base(filepath.Dir(file))+" "+strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		list = append(list, "interface "+i.Name)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "nsfs") {
			list = append(list, "mount "+strings.TrimSpace(line))
		}
	}
	return list
}
