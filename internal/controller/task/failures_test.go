package task_test

import (
	"errors"
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
)

var errLost = errors.New("the switch does not answer")

// A countedFabric counts the calls of tasks, and one call of them fails. The cells of a
// register have the same number until a task writes another.
type countedFabric struct {
	value     func(register string) uint64
	registers map[string][]uint64
	calls     int
	lost      int // the call that fails, counted from 1
	now       time.Duration
}

func (f *countedFabric) call() error {
	if f.calls++; f.calls == f.lost {
		return errLost
	}
	return nil
}

func (f *countedFabric) cells(sw, register string, n int) []uint64 {
	name := sw + " " + register
	if have := len(f.registers[name]); have < n {
		f.registers[name] = append(f.registers[name], slices.Repeat([]uint64{f.value(register)}, n-have)...)
	}
	return f.registers[name]
}

func (f *countedFabric) ReadRegister(sw, register string, from, to int, dst []uint64) ([]uint64, error) {
	if err := f.call(); err != nil {
		return dst, err
	}
	return append(dst, f.cells(sw, register, to)[from:to]...), nil
}

func (f *countedFabric) WriteRegister(sw, register string, from, to int, value uint64) error {
	if err := f.call(); err != nil {
		return err
	}
	for i := range f.cells(sw, register, to)[from:to] {
		f.registers[sw+" "+register][from+i] = value
	}
	return nil
}

func (f *countedFabric) Clock(string) (time.Duration, error)      { return f.now, f.call() }
func (f *countedFabric) QueuesEmpty(string) (bool, error)         { return true, f.call() }
func (f *countedFabric) PacketOut(_ string, _ []byte) error       { return f.call() }
func (f *countedFabric) PacketAt(_ string, _ int, _ []byte) error { return f.call() }

// TestTasksReportFailures: whichever call of a task fails, the task reports it in the same run,
// is due again later, and then works.
func TestTasksReportFailures(t *testing.T) {
	top, err := fabric.LeafSpine{Parallel: 2, Links: fabric.Links{HostRate: fabric.Gbps, Rate: fabric.Gbps, Queue: 64}}.Make()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ scheme, arch string }{
		{"hula", ""}, {"hermes", ""}, {"dhlb", ""}, {"pdlb", ""}, {"qdaps", ""}, {"drill+rlb", ""}, {"drill+rlb-star", ""}, {"dhlb", "tna"}, {"drill+rlb", "tna"},
	} {
		t.Run(c.scheme+c.arch, func(t *testing.T) {
			p := planOf(t, top, c.scheme, c.arch)
			make := func() []task.Task {
				list, err := task.ForPlan(p, task.Options{Ageing: func(task.FlowAges) {}})
				if err != nil {
					t.Fatal(err)
				}
				return list
			}
			for i, first := range make() {
				for what, value := range map[string]func(string) uint64{
					"0": func(string) uint64 { return 0 }, "1": func(string) uint64 { return 1 },
					"numbers of their own": func(register string) uint64 { return uint64(crc32.ChecksumIEEE([]byte(register)) % 1000) },
				} {
					runs := func(one task.Task, lost int) (calls int, failed error) {
						f := &countedFabric{value: value, registers: map[string][]uint64{}, lost: lost}
						now := time.Second
						for range 4 {
							f.now = now
							clear(f.registers) // packets have counted since the last run
							before := f.calls
							next, err := one.Run(now, f)
							if due := before < lost && lost <= f.calls; due != errors.Is(err, errLost) || !due && err != nil {
								t.Fatalf("%s of %s, cells with %s: call %d of %d to %d fails, the run returns %v", one.Name(), one.Switch(), what, lost, before+1, f.calls, err)
							} else if due {
								failed = err
							}
							if next <= now {
								t.Fatalf("%s of %s: the next run is at %v, which is not after %v", one.Name(), one.Switch(), next, now)
							}
							if now = next; next == task.Never {
								break
							}
						}
						return f.calls, failed
					}
					calls, _ := runs(first, 0)
					for lost := 1; lost <= min(calls, 16); lost++ {
						if _, err := runs(make()[i], lost); err == nil {
							t.Errorf("%s of %s: no run reports that call %d failed", first.Name(), first.Switch(), lost)
						}
					}
				}
			}
		})
	}
}

func planOf(t *testing.T, top *fabric.Topology, name, arch string) *plan.Plan {
	t.Helper()
	row, err := codegen.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	all := map[fabric.Role]*plan.Pipeline{}
	for _, role := range []fabric.Role{fabric.Leaf, fabric.Spine} {
		program, err := scheme.Of(row).Build(codegen.Params{Arch: arch, Role: string(role), Ports: 4, MaxPort: 64})
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := program.Compiled()
		if err != nil {
			t.Fatal(err)
		}
		all[role] = &plan.Pipeline{Manifest: program.Manifest, P4Info: compiled.P4Info, Config: compiled.JSON()}
	}
	p, err := plan.New(top, all, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
