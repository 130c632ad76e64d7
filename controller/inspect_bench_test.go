package controller_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/controller/embedded"
)

// BenchmarkSnapshot reads all registers of the scheme that has the most cells,
// by every way to them.
func BenchmarkSnapshot(b *testing.B) {
	plan := newPlan(b, leafSpine(b, 0), "hermes+rlb-star", nil)
	target := embedded.New(embedded.Options{AnyPort: true})
	defer target.Close()
	ctx := context.Background()
	if _, err := controller.Deploy(ctx, plan, target, controller.DeployOptions{}); err != nil {
		b.Fatal(err)
	}
	e, err := target.Endpoint("l1")
	if err != nil {
		b.Fatal(err)
	}
	thrift := controller.NewThrift(e.Thrift)
	defer thrift.Close()
	ways := map[string]controller.Registers{"direct": e.Registers, "thrift": thrift}
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
			in, err := controller.NewInspector(plan.Nodes()[0], regs, controller.InspectOptions{})
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

// startBMv2 runs a simple_switch with the program, where there is one.
func startBMv2(b *testing.B, s *controller.SwitchPlan) controller.Registers {
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
	cmd := exec.Command(path, "--thrift-port", port, "--log-level", "off", "--notifications-addr", "ipc://"+program+".ipc", program)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	regs := controller.NewThrift(net.JoinHostPort("127.0.0.1", port))
	for deadline := time.Now().Add(20 * time.Second); ; {
		if _, err := regs.Clock(context.Background()); err == nil {
			return regs
		} else if time.Now().After(deadline) {
			b.Fatal(err)
		}
	}
}
