package controller_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/embedded"
)

// BenchmarkSnapshot reads all registers of the scheme that has the most cells,
// by every way to them.
func BenchmarkSnapshot(b *testing.B) {
	plan := newPlan(b, leafSpine(b, 0), "hermes+rlb-star", nil)
	to := embedded.New(embedded.Options{AnyPort: true})
	defer to.Close()
	ctx := context.Background()
	if _, err := controller.Deploy(ctx, plan, to, controller.DeployOptions{}); err != nil {
		b.Fatal(err)
	}
	e, err := to.Endpoint("l1")
	if err != nil {
		b.Fatal(err)
	}
	thrift := target.NewThrift(e.Thrift)
	defer thrift.Close()
	ways := map[string]registers.Access{"direct": e.Registers, "thrift": thrift}
	if regs := startBMv2(b, plan.Switch("l1")); regs != nil {
		ways["bmv2"] = regs
	}
	for name, regs := range ways {
		b.Run(name, func(b *testing.B) {
			for _, r := range plan.Nodes()[0].Manifest.Registers {
				if r.Index == "flow" {
					if err := regs.Write(ctx, r.Name, 0, r.Size/4, 1<<15+1); err != nil {
						b.Fatal(err)
					}
				}
			}
			in, err := inspect.New(plan.Nodes()[0], regs, inspect.Options{Everything: true})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := in.Snapshot(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// startBMv2 runs a simple_switch with the program, or skips the test without
// simple_switch.
func startBMv2(b testing.TB, s *plan.Switch) registers.Access {
	b.Helper()
	path, err := exec.LookPath("simple_switch")
	if err != nil {
		return nil
	}
	program := filepath.Join(b.TempDir(), "p.json")
	if err := os.WriteFile(program, s.Pipeline.Config, 0o644); err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	// The address of notifications depends on the device id, so concurrent
	// switches need different ids.
	cmd := exec.Command(path, "--thrift-port", port, "--log-level", "off", "--device-id", strconv.Itoa(os.Getpid()), program)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	regs := target.NewThrift(net.JoinHostPort("127.0.0.1", port))
	for deadline := time.Now().Add(3 * time.Minute); ; {
		if _, err := regs.Clock(context.Background()); err == nil {
			return regs
		} else if time.Now().After(deadline) {
			b.Fatal(err)
		}
	}
}

// TestBMv2 reads a real simple_switch by Thrift: cells, ranges, whole registers
// and the clock, which continues.
func TestBMv2(t *testing.T) {
	plan := newPlan(t, leafSpine(t, 0), "dhlb", nil)
	regs := startBMv2(t, plan.Switch("l1"))
	if regs == nil {
		t.Skip("there is no simple_switch on PATH")
	}
	ctx := t.Context()
	for register, cell := range map[string]int{"deg": 2<<4 + 1, "fl_port": 4711} {
		if err := regs.Write(ctx, register, cell, cell+1, 3|1<<15); err != nil {
			t.Fatal(err)
		}
	}
	in, err := inspect.New(plan.Nodes()[0], regs, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, in)
	if r := reading(t, s, "degree", "leaf 2 path 2"); r.Raw != 3 { // of 8 bits
		t.Errorf("the degree is read as %+v", r)
	}
	if f := s.Flows[0]; f.Occupied != 1 || f.Paths[3] != 1 {
		t.Errorf("the table of flows is read as %+v", f)
	}
	if next := snapshot(t, in); next.Clock <= s.Clock || s.Guessed {
		t.Errorf("clock %v, then %v", s.Clock, next.Clock)
	}
	if _, err := regs.Read(ctx, "degrees", 0, 1, nil); err == nil {
		t.Error("a register that is not there was read")
	}
	if list, err := regs.(registers.Meter).PortCounts(ctx); err != nil || len(list) != 0 {
		t.Errorf("ports without interface have counts: %v, error %v", list, err)
	}
}
