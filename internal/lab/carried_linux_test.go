package lab

import (
	"bytes"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	real "github.com/p4lb/p4lb/internal/network/traffic"
)

// A loopback is a network with its hosts at addresses of the loopback interface.
type loopback struct{}

func (loopback) Socket(string) (int, error) {
	return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

func (loopback) Address(host string) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 78, 0, host[1] - '0'})
}

type rowsOf struct{ bytes.Buffer }

func (*rowsOf) Close() error { return nil }

// TestSend sends the flows of an experiment between hosts, once for each seed. Only metrics
// that hosts can measure are returned.
func TestSend(t *testing.T) {
	x, top := loaded(t, 1000, 1000, "traffic: [{pattern: pairs, pairs: [h1-h3, h4-h2], size: 30KB, at: [0s, 2ms]}]\nduration: 10ms\nwarmup: 0\ndrain: 10s\nseeds: [3, 5]\nclasses: [{name: small, upto: 1MB}, {name: large}]")
	tables := map[uint64]*rowsOf{}
	row, err := Send(t.Context(), x, top, loopback{}, real.Options{}, func(seed uint64) (io.WriteCloser, error) {
		tables[seed] = &rowsOf{}
		return tables[seed], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(row.Runs) != 2 || row.Runs[0].Seed != 3 || row.Runs[1].Seed != 5 {
		t.Fatalf("%+v", row)
	}
	for _, run := range row.Runs {
		if run.Metrics["unfinished"] != 0 || !(run.Metrics["fct-mean"] > 0 && run.Metrics["fct-mean"] < 5000) || !(run.Metrics["fct-mean:small"] > 0) || run.Alerts != nil {
			t.Errorf("seed %d: %v, %q", run.Seed, run.Metrics, run.Alerts)
		}
		for key := range run.Metrics {
			if name, _, _ := strings.Cut(key, ":"); !slices.Contains(measuredReal, name) {
				t.Errorf("hosts measure %s", key)
			}
		}
		if n := strings.Count(tables[run.Seed].String(), "\n"); n != 5 {
			t.Errorf("seed %d: %d rows, want the head and 4 flows", run.Seed, n)
		}
	}
	if row, err := Send(t.Context(), x, top, loopback{}, real.Options{}, nil); err != nil || len(row.Runs) != 2 {
		t.Errorf("without a table: %v", err)
	}
	x, top = loaded(t, 1000, 1000, "traffic: [{collective: all-reduce, size: 10KB}]\nduration: 10ms")
	if _, err := Send(t.Context(), x, top, loopback{}, real.Options{}, nil); err == nil || err.Error() != "flows that wait for others are the simulator's alone: here flows start by time" {
		t.Errorf("a collective: %v", err)
	}
}
