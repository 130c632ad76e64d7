package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
)

// The kill tests end deployments at random moments with SIGKILL and then deploy
// again. If the switches outlive the deployment, they must then hold exactly
// the entries of the scheme. If they belong to the deployment, its hosts must
// reach each other, and nothing may remain after p4lb down.

// A field is the environment of the killed deployments.
type field struct {
	binary, dir string
	target      string
	name        string // of the deployments in namespaces
	patience    time.Duration
	rnd         *rand.Rand
	want        map[string][]string // expected content of the switches, by scheme
	length      time.Duration       // duration of a deployment
	at          []net.IP            // addresses of the switches of the last deployment in namespaces
	detached    bool                // the killed deployments run in the background
}

var killSchemes = []string{"ecmp", "drill", "qall-poly3"}

// The places of the switches: in processes of p4lb switch, in the deployment
// itself, in the deployment without root, or in namespaces.
const (
	onServers  = "p4runtime"
	onEmbedded = "embedded"
	onRootless = "rootless"
	onBMv2     = "bmv2"
)

// detached is the suffix of targets where the killed deployments run in the background.
const detached = "-detached"

var killTargets = []string{onServers, onEmbedded, onRootless, onBMv2, onEmbedded + detached, onRootless + detached}

// nobody is the user id of a process without privileges.
const nobody = 65534

// kill kills n deployments on a target.
func kill(binary, target string, n int, seed uint64, patience time.Duration) error {
	f, err := newField(binary, target, patience)
	if err != nil {
		return err
	}
	defer os.RemoveAll(f.dir)
	f.rnd = rand.New(rand.NewPCG(seed, 0))
	switch f.target {
	case onServers:
		stop, err := f.switches()
		defer stop()
		if err != nil {
			return err
		}
	}
	untouched := func() error { return nil }
	if f.detached {
		stop, check, err := bystanders(binary, f.target, patience)
		defer stop()
		if err != nil {
			return err
		}
		untouched = check
	}
	for _, s := range killSchemes {
		began := time.Now()
		if err := f.deploy(s); err != nil {
			return err
		}
		f.length = max(f.length, time.Since(began))
		if f.want[s], err = f.holds(); err != nil {
			return err
		}
		if err := f.takeDown(); err != nil {
			return err
		}
	}
	for i := range n {
		scheme := killSchemes[f.rnd.IntN(len(killSchemes))]
		after := time.Duration(f.rnd.Int64N(int64(f.length * 5 / 4)))
		how, err := f.strike(scheme, after)
		if err != nil {
			return err
		}
		if f.rnd.IntN(3) == 0 {
			scheme = killSchemes[f.rnd.IntN(len(killSchemes))]
		}
		err = f.sound(scheme)
		if err == nil {
			err = untouched()
		}
		if err != nil {
			return fmt.Errorf("kill %d of seed %d, after %v of %s: %s: %w", i, seed, after.Round(time.Millisecond), how, scheme, err)
		}
	}
	return nil
}

// newField makes the folder of a target with its topology.
func newField(binary, target string, patience time.Duration) (*field, error) {
	dir, err := os.MkdirTemp("", "p4lb-kill-")
	if err != nil {
		return nil, err
	}
	f := &field{
		binary: binary, dir: dir, target: strings.TrimSuffix(target, detached), detached: strings.HasSuffix(target, detached),
		name: fmt.Sprintf("killed%d", os.Getpid()), patience: patience, want: map[string][]string{},
	}
	if err = f.write(); err == nil && f.target == onRootless {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		os.RemoveAll(dir)
	}
	return f, err
}

// strike starts a deployment and kills it after a time. It returns the verb that
// was interrupted. Of a detached deployment it kills the process that waits for
// it, the one in the background, or both, while it begins, runs or ends.
func (f *field) strike(scheme string, after time.Duration) (how string, err error) {
	how = "deploy"
	cmd := f.deployment(scheme, f.rnd.IntN(2) == 0)
	if f.detached {
		cmd.Args = append(cmd.Args, "--detach")
		if f.rnd.IntN(4) == 0 {
			how = "down"
			if err := f.finish(cmd); err != nil {
				return how, err
			}
			cmd = f.command("down")
		}
	}
	if err := cmd.Start(); err != nil {
		return how, err
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	time.Sleep(after)
	if victims := f.rnd.IntN(3); !f.detached || victims != 0 {
		cmd.Process.Kill()
		if f.detached && victims == 2 {
			f.killAll()
		}
	} else {
		f.killAll()
	}
	<-ended
	return how, nil
}

// killAll kills all processes of deployments in the folder.
func (f *field) killAll() {
	for pid, line := range f.running() {
		if strings.Contains(line, " deploy ") {
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
		}
	}
}

// bystanders starts what kills must not touch: a detached deployment of the same
// topology in another folder, and a process that works there. untouched checks
// that both still run.
func bystanders(binary, target string, patience time.Duration) (stop func(), untouched func() error, err error) {
	f, err := newField(binary, target, patience)
	if err != nil {
		return func() {}, nil, err
	}
	sleep := exec.Command("sleep", "infinity")
	sleep.Dir = f.dir
	stop = func() {
		f.run("down")
		if sleep.Process != nil {
			sleep.Process.Kill()
			sleep.Wait()
		}
		os.RemoveAll(f.dir)
	}
	if err := errors.Join(f.deploy(killSchemes[0]), sleep.Start()); err != nil {
		return stop, nil, err
	}
	want := f.running()
	return stop, func() error {
		if have := f.running(); !maps.Equal(have, want) {
			return fmt.Errorf("another deployment: its processes are %v, want %v", have, want)
		}
		if err := f.run("exec", "h1", "--", "ping", "-q", "-c", "1", "-W", "5", "10.0.2.1"); err != nil {
			return fmt.Errorf("another deployment: %w", err)
		}
		return nil
	}, nil
}

// sound deploys and checks that the result is complete and has nothing else.
func (f *field) sound(scheme string) error {
	if !f.detached && (f.target == onEmbedded || f.target == onRootless) {
		// The kernel ends the child processes with a delay.
		if err := f.await(f.processes); err != nil {
			return err
		}
	}
	if err := f.deploy(scheme); err != nil {
		return err
	}
	have, err := f.holds()
	if err != nil {
		return err
	}
	if want := f.want[scheme]; !slices.Equal(have, want) {
		return fmt.Errorf("the switches hold %d entities, want %d, or others", len(have), len(want))
	}
	return f.takeDown()
}

// takeDown checks that the hosts of a deployment reach each other, ends it, and
// checks for remains.
func (f *field) takeDown() error {
	if f.target != onServers {
		if err := f.run("exec", "h1", "--", "ping", "-q", "-c", "3", "-i", "0.2", "-W", "5", "10.0.2.1"); err != nil {
			return err
		}
		if err := f.run("down"); err != nil {
			return err
		}
	}
	return f.await(f.left)
}

// await waits until what returns nothing.
func (f *field) await(what func() []string) error {
	var left []string
	for end := time.Now().Add(f.patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if left = what(); len(left) == 0 {
			return nil
		}
	}
	return fmt.Errorf("remaining: %q", left)
}

// left returns what deployments must not leave behind: files, processes (except
// switches that existed before), namespaces and interfaces.
func (f *field) left() (list []string) {
	files, _ := filepath.Glob(filepath.Join(f.dir, "*"))
	notes, _ := filepath.Glob(filepath.Join("/run/p4lb", f.name+"*"))
	spaces, _ := filepath.Glob(filepath.Join("/run/netns", "p4lb-"+f.name+"-*"))
	for _, file := range slices.Concat(files, notes, spaces) {
		if base := filepath.Base(file); base != "net.yaml" && (base != "deployed.json" || f.target != onServers) {
			list = append(list, file)
		}
	}
	if f.target != onServers {
		list = append(list, f.processes()...)
	}
	if f.target == onBMv2 {
		list = append(list, f.interfaces()...)
	}
	return list
}

// interfaces returns the interfaces in this machine's own namespace that lead
// to the switches of the last deployment.
func (f *field) interfaces() (list []string) {
	all, _ := net.Interfaces()
	for _, i := range all {
		addresses, _ := i.Addrs()
		if slices.ContainsFunc(addresses, func(a net.Addr) bool {
			pair, ok := a.(*net.IPNet)
			return ok && slices.ContainsFunc(f.at, pair.Contains)
		}) {
			list = append(list, i.Name)
		}
	}
	return list
}

// readAddresses reads the addresses of the deployment's switches.
func (f *field) readAddresses() error {
	var note struct {
		Switches []struct{ Thrift string }
	}
	text, err := os.ReadFile(filepath.Join(f.dir, "deployed.json"))
	if err == nil {
		err = json.Unmarshal(text, &note)
	}
	f.at = nil
	for _, s := range note.Switches {
		host, _, _ := net.SplitHostPort(s.Thrift)
		f.at = append(f.at, net.ParseIP(host))
	}
	if err == nil && len(f.interfaces()) != len(killSwitches) {
		err = fmt.Errorf("%v: no interfaces lead there", f.at)
	}
	return err
}

// deployment returns the command to be killed. keep leaves switches in
// namespaces running.
func (f *field) deployment(scheme string, keep bool) *exec.Cmd {
	args := []string{"deploy", "--scheme", scheme, "--topology", "net.yaml", "--timeout", f.patience.String()}
	switch f.target {
	case onServers:
		args = append(args, "--target", f.target, "--once")
	case onBMv2:
		args = append(args, "--target", f.target, "--name", f.name)
		if keep {
			args = append(args, "--keep")
		}
	default:
		args = append(args, "--any-port")
	}
	return f.command(args...)
}

func (f *field) command(args ...string) *exec.Cmd {
	cmd := exec.Command(f.binary, slices.Insert(args, 1, "--state", "deployed.json")...)
	cmd.Dir = f.dir
	if f.target == onRootless {
		asNobody(cmd)
	}
	return cmd
}

func (f *field) run(args ...string) error {
	return f.finish(f.command(args...))
}

// finish runs a command with a time limit.
func (f *field) finish(cmd *exec.Cmd) error {
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return err
	}
	defer time.AfterFunc(3*f.patience, func() { cmd.Process.Kill() }).Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %.3000s", cmd.Args[1], err, &said)
	}
	return nil
}

// deploy deploys persistently.
func (f *field) deploy(scheme string) error {
	cmd := f.deployment(scheme, true)
	switch f.target {
	case onBMv2:
		cmd.Args = append(cmd.Args, "--once")
	case onEmbedded, onRootless:
		cmd.Args = append(cmd.Args, "--detach")
	}
	if err := f.finish(cmd); err != nil {
		return err
	}
	if f.target == onBMv2 {
		return f.readAddresses()
	}
	return nil
}

// processes returns the command lines of the processes with the folder as working
// directory.
func (f *field) processes() []string { return slices.Collect(maps.Values(f.running())) }

// running returns the processes with the folder as working directory.
func (f *field) running() map[int]string {
	list := map[int]string{}
	found, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range found {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, f.dir) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			list[pid] = strings.ReplaceAll(string(text), "\x00", " ")
		}
	}
	return list
}

// The switches, with device ids from 1.
var killSwitches = []string{"l1", "l2", "s1", "s2"}

// write writes the topology with free ports.
func (f *field) write() error {
	text := "name: killed\nswitches:\n"
	for i, name := range killSwitches {
		grpc, err := freePort()
		if err != nil {
			return err
		}
		thrift, err := freePort()
		if err != nil {
			return err
		}
		text += fmt.Sprintf("  %s: {role: %s, id: %d, grpc: %s, thrift: %s}\n", name, map[byte]string{'l': "leaf", 's': "spine"}[name[0]], i+1, grpc, thrift)
	}
	text += `hosts:
  h1: {ip: 10.0.1.1/24, mac: "02:00:0a:00:01:01"}
  h2: {ip: 10.0.2.1/24, mac: "02:00:0a:00:02:01"}
links:
  - {ends: [h1, l1:1], rate: 10Gbps, delay: 0s}
  - {ends: [h2, l2:1], rate: 10Gbps, delay: 0s}
  - {ends: [l1:2, s1:1], rate: 10Gbps, delay: 0s}
  - {ends: [l1:3, s2:1], rate: 10Gbps, delay: 0s}
  - {ends: [l2:2, s1:2], rate: 10Gbps, delay: 0s}
  - {ends: [l2:3, s2:2], rate: 10Gbps, delay: 0s}
`
	return os.WriteFile(filepath.Join(f.dir, "net.yaml"), []byte(text), 0o644)
}

// address returns the address of a switch's P4Runtime server.
func (f *field) address(i int) string {
	text, _ := os.ReadFile(filepath.Join(f.dir, "net.yaml"))
	_, rest, _ := strings.Cut(string(text), "  "+killSwitches[i]+":")
	_, rest, _ = strings.Cut(rest, "grpc: ")
	address, _, _ := strings.Cut(rest, ",")
	return address
}

// switches starts the switches for the deployments.
func (f *field) switches() (stop func(), err error) {
	var list []*exec.Cmd
	stop = func() {
		for _, c := range list {
			c.Process.Kill()
			c.Wait()
		}
	}
	for i := range killSwitches {
		c := exec.Command(f.binary, "switch", "--grpc", f.address(i), "--device-id", fmt.Sprint(i+1), "--cpu-port", "510")
		if err := c.Start(); err != nil {
			return stop, err
		}
		list = append(list, c)
	}
	return stop, nil
}

// holds returns all entities on the switches of a p4runtime target, in order,
// without counters.
func (f *field) holds() (all []string, err error) {
	if f.target != onServers {
		return nil, nil
	}
	pre := func(e *p4v1.PacketReplicationEngineEntry) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: e}}
	}
	request := []*p4v1.Entity{
		{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{}}},
		{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{IsDefaultAction: true}}},
		{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{}}},
		{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: &p4v1.ActionProfileGroup{}}},
		{Entity: &p4v1.Entity_MeterEntry{MeterEntry: &p4v1.MeterEntry{}}},
		{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{}}},
		pre(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: &p4v1.MulticastGroupEntry{}}}),
		pre(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: &p4v1.CloneSessionEntry{}}}),
	}
	ctx, cancel := context.WithTimeout(context.Background(), f.patience)
	defer cancel()
	for i, name := range killSwitches {
		c, err := dial(f.address(i))
		if err != nil {
			return nil, err
		}
		config, err := c.GetForwardingPipelineConfig(ctx, &p4v1.GetForwardingPipelineConfigRequest{DeviceId: uint64(i + 1)})
		if err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprintf("%s %d bytes", name, len(config.GetConfig().GetP4DeviceConfig())))
		stream, err := c.Read(ctx, &p4v1.ReadRequest{DeviceId: uint64(i + 1), Entities: request})
		if err != nil {
			return nil, err
		}
		for {
			m, err := stream.Recv()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					return nil, err
				}
				break
			}
			for _, e := range m.GetEntities() {
				b, err := proto.MarshalOptions{Deterministic: true}.Marshal(e)
				if err != nil {
					return nil, err
				}
				all = append(all, fmt.Sprintf("%s %x", name, b))
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
