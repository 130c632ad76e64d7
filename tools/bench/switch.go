package bench

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/stf"
	"github.com/p4lb/p4lb/internal/p4"
)

// A switchBench is a program measured on the embedded switch, with the entries
// and the first packet of its packet test.
type switchBench struct{ name, what string }

var switchBenches = []switchBench{
	{"reflector", "addresses swapped"},
	{"router", "IPv4 LPM, checksum verified and updated"},
	{"flowlet", "5-tuple hash, two registers, tables of groups, members and next hops"},
	{"feedback", "each packet cloned at egress and the clone recirculated"},
}

// benchPackets is the number of packets in one run.
const benchPackets = 20_000

// Switch measures the embedded switch: packets through its queues on one core,
// without input and output; table lookups; and the control plane as seen by
// P4Runtime and BfRt clients over loopback.
//
// The values are CPU times of one thread or of the process, because elapsed
// time would include other work on the machine.
func Switch(ctx context.Context, runs int) ([]Measurement, error) {
	var list []Measurement
	for _, b := range switchBenches {
		for _, size := range []int{64, 1500} {
			m, err := b.run(ctx, size, runs)
			if err != nil {
				return nil, fmt.Errorf("measuring %s: %w", b.name, err)
			}
			list = append(list, m...)
		}
	}
	for _, control := range []func(context.Context, int) ([]Measurement, error){benchP4Runtime, benchBfRt} {
		more, err := control(ctx, runs)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// run measures packets of the given size, and for small packets also the
// reference engine.
func (b switchBench) run(ctx context.Context, size, runs int) ([]Measurement, error) {
	list, err := b.measure(ctx, size, runs, dataplane.Options{})
	if err != nil || size > 64 {
		return list, err
	}
	reference, err := b.measure(ctx, size, runs, dataplane.Options{Closures: true})
	if err != nil {
		return nil, err
	}
	r := reference[0]
	r.Name, r.Detail = r.Name+".closures", "the same with the reference engine"
	return append(list, r), nil
}

// measure times packets of the given size through a switch with options.
func (b switchBench) measure(ctx context.Context, size, runs int, o dataplane.Options) ([]Measurement, error) {
	engine, port, packet, err := b.load(size, o)
	if err != nil {
		return nil, err
	}
	now := time.Hour // far later than the times in the registers after the packet test
	pass := func() error {
		for range benchPackets {
			now += time.Microsecond
			if len(engine.Process(port, packet, now)) != 1 {
				return errors.New("the packet was not forwarded")
			}
		}
		return nil
	}
	if err := pass(); err != nil { // warm-up
		return nil, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent, err := repeat(ctx, runs, time.Second, threadTime, pass)
	if err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&after)
	allocs := float64(after.Mallocs-before.Mallocs) / float64(len(spent)*benchPackets)
	name := "switch." + b.name + "." + strconv.Itoa(size)
	return []Measurement{
		{name, benchPackets / median(spent).Seconds() / 1e6, "Mpkt/s", fmt.Sprintf("%s.p4 with %d-byte packets, CPU time of one core, median of %d (%s)", b.name, size, len(spent), b.what)},
		{name + ".allocs", float64(int(allocs*100)) / 100, "1/pkt", "memory allocations for one of these packets"},
	}, nil
}

// repeat measures f with a clock up to runs times. It ends after three runs
// that took longer than budget in total, and after any run if they took twice
// as long.
func repeat(ctx context.Context, runs int, budget time.Duration, clock func() time.Duration, f func() error) ([]time.Duration, error) {
	runtime.LockOSThread() // the clock may be the thread's
	defer runtime.UnlockOSThread()
	var spent []time.Duration
	begin := time.Now()
	for range runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start := clock()
		if err := f(); err != nil {
			return nil, err
		}
		spent = append(spent, clock()-start)
		if late := time.Since(begin); len(spent) >= 3 && late > budget || late > 2*budget {
			break
		}
	}
	return spent, nil
}

// load compiles the program and prepares a switch and a packet of the given
// size.
func (b switchBench) load(size int, o dataplane.Options) (*dataplane.Engine, uint32, []byte, error) {
	p, err := p4.Compile(examples.FS, b.name+".p4", p4.Options{})
	if err != nil {
		return nil, 0, nil, err
	}
	sw, err := dataplane.New(p.Config, o)
	if err != nil {
		return nil, 0, nil, err
	}
	text, err := examples.FS.ReadFile(b.name + ".stf")
	if err != nil {
		return nil, 0, nil, err
	}
	script, err := stf.Parse(b.name+".stf", string(text))
	if err != nil {
		return nil, 0, nil, err
	}
	if err := script.Run(sw); err != nil {
		return nil, 0, nil, err
	}
	port, packet, err := firstPacket(string(text))
	if err != nil {
		return nil, 0, nil, err
	}
	packet = slices.Grow(packet, size)
	return dataplane.NewEngine(sw), port, packet[:max(size, len(packet))], nil
}

// firstPacket returns the first packet that a test sends.
func firstPacket(text string) (uint32, []byte, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "packet" {
			continue
		}
		port, err := strconv.ParseUint(fields[1], 10, 32)
		if err != nil {
			return 0, nil, err
		}
		data, err := hex.DecodeString(strings.Join(fields[2:], ""))
		return uint32(port), data, err
	}
	return 0, nil, errors.New("the test sends no packet")
}
