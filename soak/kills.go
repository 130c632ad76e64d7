package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
)

// Kills end deployments at random moments by SIGKILL, and then deploy again:
// all that the scheme wants must be on the switches then and nothing else, and
// where the switches belong to the deployment nothing of them may be left.

// A field is where deployments are killed.
type field struct {
	binary, dir string
	target      string
	patience    time.Duration
	rnd         *rand.Rand
	want        map[string][]string // by scheme: what the switches hold
	length      time.Duration       // of a deployment
}

var killSchemes = []string{"ecmp", "drill", "qall-poly3"}

// kill kills n deployments on a target, which is where deploy has its switches:
// p4runtime, which are processes of p4lb switch here, embedded or bmv2.
func kill(binary, target string, n int, seed uint64, patience time.Duration) error {
	dir, err := os.MkdirTemp("", "p4lb-kill-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f := &field{binary, dir, target, patience, rand.New(rand.NewPCG(seed, 0)), map[string][]string{}, 0}
	if err := f.write(); err != nil {
		return err
	}
	if target == "p4runtime" {
		stop, err := f.switches()
		defer stop()
		if err != nil {
			return err
		}
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
	}
	for i := range n {
		scheme := killSchemes[f.rnd.IntN(len(killSchemes))]
		after := time.Duration(f.rnd.Int64N(int64(f.length)))
		cmd := f.command(scheme)
		if err := cmd.Start(); err != nil {
			return err
		}
		time.Sleep(after)
		cmd.Process.Kill()
		cmd.Wait()
		if f.rnd.IntN(3) == 0 {
			scheme = killSchemes[f.rnd.IntN(len(killSchemes))]
		}
		if err := f.sound(scheme); err != nil {
			return fmt.Errorf("kill %d of seed %d, after %v: %s: %w", i, seed, after.Round(time.Millisecond), scheme, err)
		}
	}
	return nil
}

// sound deploys, and looks whether all is there and nothing else.
func (f *field) sound(scheme string) error {
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
	if parts, _ := filepath.Glob(filepath.Join(f.dir, "*.part")); len(parts) > 0 {
		return fmt.Errorf("%v is left", parts)
	}
	if f.target == "p4runtime" {
		return nil
	}
	if left := f.processes(); len(left) > 0 {
		return fmt.Errorf("processes are left: %q", left)
	}
	spaces, _ := exec.Command("ip", "netns", "list").Output()
	if strings.Contains(string(spaces), "killed") {
		return fmt.Errorf("namespaces are left: %s", spaces)
	}
	return nil
}

func (f *field) command(scheme string) *exec.Cmd {
	args := []string{"deploy", "--scheme", scheme, "--topology", "net.yaml", "--target", f.target, "--state", "deployed.json", "--once", "--timeout", f.patience.String()}
	if f.target == "embedded" {
		args = append(args, "--any-port")
	}
	if f.target == "bmv2" {
		args = append(args, "--name", "killed")
	}
	cmd := exec.Command(f.binary, args...)
	cmd.Dir = f.dir
	return cmd
}

func (f *field) deploy(scheme string) error {
	if text, err := f.command(scheme).CombinedOutput(); err != nil {
		return fmt.Errorf("deploying: %v: %.3000s", err, text)
	}
	return nil
}

// processes are those that work in the folder.
func (f *field) processes() (list []string) {
	found, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range found {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, f.dir) {
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			list = append(list, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return list
}

// The switches, by their device ids from 1 on.
var killSwitches = []string{"l1", "l2", "s1", "s2"}

// write writes the topology, with free ports.
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

// address is that of a switch's P4Runtime server.
func (f *field) address(i int) string {
	text, _ := os.ReadFile(filepath.Join(f.dir, "net.yaml"))
	_, rest, _ := strings.Cut(string(text), "  "+killSwitches[i]+":")
	_, rest, _ = strings.Cut(rest, "grpc: ")
	address, _, _ := strings.Cut(rest, ",")
	return address
}

// switches begins the switches that the deployments find.
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

// holds is what the switches of a p4runtime target hold, in order: all entities
// but what packets change.
func (f *field) holds() (all []string, err error) {
	if f.target != "p4runtime" {
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
