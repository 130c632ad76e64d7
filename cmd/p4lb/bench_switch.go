package main

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

	"github.com/p4lb/p4lb/dataplane"
	"github.com/p4lb/p4lb/dataplane/stf"
	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/p4"
)

// A switchBench is a program that the embedded switch is measured on, with the
// entries of its own packet test and the first packet of that test.
type switchBench struct{ name, what string }

var switchBenches = []switchBench{
	{"reflector", "addresses swapped"},
	{"router", "IPv4 LPM, checksum verified and updated"},
	{"flowlet", "5-tuple hash, two registers, tables of groups, members and next hops"},
	{"feedback", "each packet cloned at egress and the clone recirculated"},
}

// benchTime is how long one run of a switch benchmark takes.
const benchTime = 100 * time.Millisecond

// benchSwitch measures the embedded switch on one core: packets in and out
// through its queues, without any input or output.
func benchSwitch(ctx context.Context, runs int) ([]measurement, error) {
	var list []measurement
	for _, b := range switchBenches {
		for _, size := range []int{64, 1500} {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			m, err := b.run(size, runs)
			if err != nil {
				return nil, fmt.Errorf("measuring %s: %w", b.name, err)
			}
			list = append(list, m...)
		}
	}
	return list, nil
}

// run takes the median rate of some runs with packets of size bytes.
func (b switchBench) run(size, runs int) ([]measurement, error) {
	engine, port, packet, err := b.load(size)
	if err != nil {
		return nil, err
	}
	now := time.Hour // far behind what the packet test left in the registers
	var rates, allocs []float64
	for range runs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		packets := 0
		for time.Since(start) < benchTime {
			for range 1000 {
				now += time.Microsecond
				if len(engine.Process(port, packet, now)) != 1 {
					return nil, errors.New("the packet does not come out")
				}
			}
			packets += 1000
		}
		spent := time.Since(start)
		runtime.ReadMemStats(&after)
		rates = append(rates, float64(packets)/spent.Seconds()/1e6)
		allocs = append(allocs, float64(after.Mallocs-before.Mallocs)/float64(packets))
	}
	name := "switch." + b.name + "." + strconv.Itoa(size)
	return []measurement{
		{name, median(rates), "Mpkt/s", fmt.Sprintf("%s.p4 with %d-byte packets, one core (%s)", b.name, size, b.what)},
		{name + ".allocs", float64(int(median(allocs)*100)) / 100, "1/pkt", "memory allocations for one of these packets"},
	}, nil
}

// load compiles the program and prepares a switch and a packet of size bytes.
func (b switchBench) load(size int) (*dataplane.Engine, uint32, []byte, error) {
	p, err := p4.Compile(examples.FS, b.name+".p4", p4.Options{})
	if err != nil {
		return nil, 0, nil, err
	}
	sw, err := dataplane.New(p.Config, dataplane.Options{})
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

// firstPacket is the first packet that a test sends.
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
