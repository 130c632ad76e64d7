package bench

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

//go:embed bench_switch.p4 bench_chip.p4
var benchSource embed.FS

// benchElection is the election id of the client.
const benchElection = 1

// A controlRig is a switch that serves P4Runtime on loopback, with a primary
// client.
type controlRig struct {
	rig
	config *p4v1.ForwardingPipelineConfig
	client p4v1.P4RuntimeClient
}

// newControlRig starts the server and the client, until ctx is done.
func newControlRig(ctx context.Context) (*controlRig, error) {
	compiled, err := p4.Compile(benchSource, "bench_switch.p4", p4.Options{})
	if err != nil {
		return nil, err
	}
	r := &controlRig{rig: rig{ctx: ctx}, config: &p4v1.ForwardingPipelineConfig{P4Info: compiled.P4Info, P4DeviceConfig: compiled.JSON()}}
	if err := r.load(); err != nil {
		return nil, err
	}
	if err := r.begin(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// begin starts the server and makes the client primary.
func (r *controlRig) begin() error {
	s, err := p4rt.NewServer(r.dev, p4rt.Options{})
	if err != nil {
		return err
	}
	r.server = s
	if err := r.connect(); err != nil {
		return err
	}
	r.client = p4v1.NewP4RuntimeClient(r.conn)
	stream, err := r.client.StreamChannel(r.ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{
		Arbitration: &p4v1.MasterArbitrationUpdate{ElectionId: &p4v1.Uint128{Low: benchElection}},
	}}); err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

// configure sets the program again, which removes all entries.
func (r *controlRig) configure() error {
	_, err := r.client.SetForwardingPipelineConfig(r.ctx, &p4v1.SetForwardingPipelineConfigRequest{
		ElectionId: &p4v1.Uint128{Low: benchElection}, Config: r.config,
		Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
	})
	return err
}

func (r *controlRig) write(batches ...[]*p4v1.Update) error {
	for _, updates := range batches {
		if _, err := r.client.Write(r.ctx, &p4v1.WriteRequest{ElectionId: &p4v1.Uint128{Low: benchElection}, Updates: updates}); err != nil {
			return err
		}
	}
	return nil
}

// read reads the entities that match e and checks their number.
func (r *controlRig) read(e *p4v1.Entity, want int) error {
	stream, err := r.client.Read(r.ctx, &p4v1.ReadRequest{Entities: []*p4v1.Entity{e}})
	if err != nil {
		return err
	}
	return drain(stream.Recv, want)
}

// drain receives the answer to a read and checks the number of entities.
func drain[E any, M interface{ GetEntities() []E }](next func() (M, error), want int) error {
	n := 0
	for {
		m, err := next()
		switch {
		case err == nil:
			n += len(m.GetEntities())
		case !errors.Is(err, io.EOF):
			return err
		case n != want:
			return fmt.Errorf("reading: %d entities, want %d", n, want)
		default:
			return nil
		}
	}
}

// benchP4Runtime measures the control plane, and lookups in the tables filled
// by it.
func benchP4Runtime(ctx context.Context, runs int) ([]Measurement, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := newControlRig(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting a switch: %w", err)
	}
	defer r.close()
	var list []Measurement
	for _, bench := range []func(int) ([]Measurement, error){r.benchLoad, r.benchWrites, r.benchReads, r.benchLookups} {
		more, err := bench(runs)
		if err != nil {
			return nil, fmt.Errorf("measuring P4Runtime: %w", err)
		}
		list = append(list, more...)
	}
	return list, nil
}

func (r *controlRig) timed(runs int, budget time.Duration, f func() error) (time.Duration, string, error) {
	return timed(r.ctx, runs, budget, f)
}

// timed repeats f and measures the CPU time of the process. The second result
// describes the measurement.
func timed(ctx context.Context, runs int, budget time.Duration, f func() error) (time.Duration, string, error) {
	var wall []time.Duration
	spent, err := repeat(ctx, runs, budget, processTime, func() error {
		start := time.Now()
		err := f()
		wall = append(wall, time.Since(start))
		return err
	})
	if err != nil {
		return 0, "", err
	}
	return median(spent), fmt.Sprintf("CPU time of server and client over loopback, median of %d (%.3g ms elapsed)", len(spent), milliseconds(median(wall))), nil
}
