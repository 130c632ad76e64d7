package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// benchNetwork measures complete networks with hosts: the time from the command
// to the first answered ping, the round-trip time across an idle network, and
// the throughput of a TCP connection, compared with simple_switch_grpc if it is
// installed.
func benchNetwork(ctx context.Context, runs int) ([]Measurement, error) {
	if _, err := exec.LookPath("ping"); err != nil {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "p4lb-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var list []Measurement
	links := fabric.Links{HostRate: 10 * fabric.Gbps, Rate: 10 * fabric.Gbps, Queue: 64}
	small := fabric.LeafSpine{Leaves: 2, Spines: 2, Parallel: 2, Hosts: 16, Links: links}
	large := fabric.LeafSpine{Leaves: 16, Spines: 4, Hosts: 8, Links: links}
	for _, size := range []fabric.LeafSpine{small, large} {
		t, err := size.Make()
		if err != nil {
			return nil, err
		}
		n := &benchedNetwork{dir, t}
		more, err := n.measure(ctx, min(runs, 3), size == small)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// A benchedNetwork is a network started from a folder by other processes.
type benchedNetwork struct {
	dir string
	t   *fabric.Topology
}

// run runs a p4lb command in the folder.
func (n *benchedNetwork) run(ctx context.Context, args ...string) ([]byte, error) {
	u, err := start(ctx, 1, n.dir, args...)
	return u.said, err
}

// across runs a command on the first host with the address of the last one.
func (n *benchedNetwork) across(ctx context.Context, args ...string) ([]byte, error) {
	first, last := n.t.Hosts[0], n.t.Hosts[len(n.t.Hosts)-1]
	return n.run(ctx, append(append([]string{"exec", first.Name, "--"}, args...), last.IP.Addr().String())...)
}

// measure starts the network several times. whole also measures its traffic.
func (n *benchedNetwork) measure(ctx context.Context, runs int, whole bool) (list []Measurement, err error) {
	file := filepath.Join(n.dir, "network.yaml")
	if err := os.WriteFile(file, n.t.YAML(), 0o666); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d hosts and %d switches", len(n.t.Hosts), len(n.t.Switches))
	var spent []time.Duration
	for i := range runs {
		start := time.Now()
		if _, err := n.run(ctx, "deploy", "--scheme", controlScheme, "--topology", file, "--any-port", "--detach", "--rates=false", "-q"); err != nil {
			return nil, err
		}
		_, err := n.across(ctx, "ping", "-c", "1", "-W", "5")
		spent = append(spent, time.Since(start))
		if err == nil && whole && i == runs-1 {
			list, err = n.carries(ctx, "")
		}
		if _, e := n.run(ctx, "down", "-q"); e != nil || err != nil {
			return nil, errors.Join(err, e)
		}
	}
	list = append(list, Measurement{fmt.Sprintf("veth.first_ping_%d", len(n.t.Hosts)), median(spent).Seconds(), "s",
		fmt.Sprintf("%s, %s, embedded with hosts: from p4lb deploy --detach to the first answered ping across the network, median of %d", controlScheme, what, runs)})
	if !whole || os.Getuid() != 0 {
		return list, nil
	}
	other, err := exec.LookPath("simple_switch_grpc")
	if err != nil {
		return list, nil
	}
	if _, err := n.run(ctx, "deploy", "--scheme", controlScheme, "--topology", file, "--target", "bmv2", "--name", "bench", "--keep", "--once", "-q"); err != nil {
		return nil, err
	}
	theirs, err := n.carries(ctx, ".simple_switch_grpc")
	if _, e := n.run(ctx, "down", "-q"); e != nil || err != nil {
		return nil, errors.Join(err, e)
	}
	for _, ours := range list {
		for _, m := range theirs {
			if m.Name == ours.Name+".simple_switch_grpc" && m.Unit == "Mbit/s" {
				theirs = append(theirs, Measurement{ours.Name + ".ratio", ours.Value / m.Value, "", "embedded switches (" + ownBuild() + ") divided by simple_switch_grpc; " + peerBuild(other)})
				break
			}
		}
	}
	return append(list, theirs...), nil
}

// pingMean matches the mean in the summary of ping.
var pingMean = regexp.MustCompile(`= [0-9.]+/([0-9.]+)/`)

// carries measures the running network.
func (n *benchedNetwork) carries(ctx context.Context, suffix string) (list []Measurement, err error) {
	out, err := n.across(ctx, "ping", "-q", "-c", "100", "-i", "0.01")
	if err != nil {
		return nil, err
	}
	if m := pingMean.FindSubmatch(out); m != nil {
		mean, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return nil, err
		}
		list = append(list, Measurement{"veth.ping" + suffix, mean, "ms", "round trip over leaf, spine and leaf in an idle network, mean of 100"})
	}
	if _, err := exec.LookPath("iperf3"); err != nil {
		return list, nil
	}
	last := n.t.Hosts[len(n.t.Hosts)-1]
	if _, err := n.run(ctx, "exec", last.Name, "--", "iperf3", "-s", "-1", "-D"); err != nil {
		return nil, err
	}
	const tries = 50 // the server needs time to listen
	for range tries {
		if out, err = n.across(ctx, "iperf3", "-J", "-t", "3", "-c"); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err != nil {
		return nil, err
	}
	var said struct {
		End struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return nil, fmt.Errorf("parsing the output of iperf3: %w", err)
	}
	return append(list, Measurement{"veth.tcp" + suffix, said.End.Received.Rate / 1e6, "Mbit/s", "one TCP connection over leaf, spine and leaf at full speed: iperf3 for 3 s"}), nil
}
