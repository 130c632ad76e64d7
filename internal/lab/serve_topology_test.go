//go:build !js

package lab

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// TestServedTopology: the topology for controllers has the addresses of the servers, BfRt where a
// switch has no P4Runtime, and leaves the run's topology as it is.
func TestServedTopology(t *testing.T) {
	_, top := loaded(t, 1000, 1000, "")
	d := &served{r: &running{topo: top}, at: []servedSwitch{{Name: "l1", CPUPort: 255, Address: "a:1", Thrift: "a:2"}, {Name: "s1", CPUPort: 64, Address: "", BfRt: "a:3"}, {Name: "s2", CPUPort: 320, Address: "a:4", BfRt: "a:5"}}}
	before := *top.Switch("l1")
	w := httptest.NewRecorder()
	d.topology(w, func(topo *fabric.Topology, cpu map[string]int) ([]byte, error) {
		l, a, b := topo.Switch("l1"), topo.Switch("s1"), topo.Switch("s2")
		return fmt.Append(nil, cpu, l.GRPC, l.Thrift, a.GRPC, a.Thrift, b.GRPC), nil
	})
	if got, want := w.Body.String(), "map[l1:255 s1:64 s2:320]a:1a:2a:3a:4"; w.Code != 200 || got != want || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d, %v: %s, want %s", w.Code, w.Header(), got, want)
	}
	if s := top.Switch("l1"); s.GRPC != before.GRPC || s.Thrift != before.Thrift {
		t.Errorf("the run's topology has %q and %q", s.GRPC, s.Thrift)
	}
	w = httptest.NewRecorder()
	d.topology(w, func(*fabric.Topology, map[string]int) ([]byte, error) {
		return nil, errors.New("no form of this network")
	})
	if w.Code != 404 || w.Body.String() != "no form of this network\n" {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}
