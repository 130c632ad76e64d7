package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/leaf"
)

// Generate measures the generator, and each program of the catalogue on the
// embedded switch with four paths.
func Generate(ctx context.Context, runs int) ([]Measurement, error) {
	var wall []time.Duration
	var list []*scheme.Program
	spent, err := repeat(ctx, min(runs, 5), 3*time.Second, processTime, func() (err error) {
		start := time.Now()
		if list, err = scheme.MakeAll(ctx, new(scheme.Library).All(), codegen.Params{}); err != nil {
			return err
		}
		for _, g := range list {
			if _, err := scheme.Files(g); err != nil {
				return err
			}
		}
		wall = append(wall, time.Since(start))
		return nil
	})
	if err != nil {
		return nil, err
	}
	result := []Measurement{{"gen.all", milliseconds(median(spent)), "ms",
		fmt.Sprintf("generate and compile the %d programs of the catalogue, CPU time of all cores, median of %d (%.3g ms by the clock)", len(list), len(spent), milliseconds(median(wall)))}}
	for _, g := range list {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		rate, err := benchForwarding(ctx, g, runs)
		if err != nil {
			return nil, fmt.Errorf("measuring %s: %w", g.Name, err)
		}
		result = append(result, Measurement{"gen." + g.Name, rate, "Mpkt/s", "its program on the embedded switch, " + benchTraffic})
	}
	hardware, err := benchHardware(ctx, runs)
	return append(result, hardware...), err
}

// benchTraffic describes the forwarded packets.
const benchTraffic = "4 paths, 200-byte packets of 256 flows, CPU time of one core"

// benchForwarding returns the median rate in packets per µs of CPU time.
func benchForwarding(ctx context.Context, p *scheme.Program, runs int) (float64, error) {
	sw, err := leaf.New(p, 4)
	if err != nil {
		return 0, err
	}
	packets := leaf.Packets(256)
	now := time.Second
	n := 0
	pass := func() error {
		for range leafRun {
			now += 2 * time.Microsecond
			if out := sw.Process(leaf.HostPort, packets[n%len(packets)], now); len(out) != 1 {
				return fmt.Errorf("packet %d: %d packets were sent", n, len(out))
			}
			n++
		}
		return nil
	}
	if err := pass(); err != nil { // warm-up
		return 0, err
	}
	spent, err := repeat(ctx, runs, time.Second, threadTime, pass)
	if err != nil {
		return 0, err
	}
	return leafRun / float64(median(spent).Nanoseconds()) * 1e3, nil
}

// leafRun is the number of packets in one run of benchForwarding. A run is
// shorter than a time slice, so few runs are interrupted.
const leafRun = 2000
