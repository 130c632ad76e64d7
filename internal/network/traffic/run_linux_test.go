package traffic

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A loopback network has its hosts at addresses of the loopback interface.
type loopback map[string]netip.Addr

func (loopback) Socket(string) (int, error) {
	return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}
func (l loopback) Address(host string) netip.Addr { return l[host] }

var pair = loopback{"h1": netip.MustParseAddr("127.77.0.1"), "h2": netip.MustParseAddr("127.77.0.2")}

// TestRun sends flows in both directions at once, from very small to larger
// ones.
func TestRun(t *testing.T) {
	var flows []Flow
	for i := range 40 {
		f := Flow{From: "h1", To: "h2", Bytes: 1 + int64(i*i)*1000, Start: time.Duration(i) * time.Millisecond}
		if i%2 == 1 {
			f.From, f.To = f.To, f.From
		}
		flows = append(flows, f)
	}
	ended := 0
	list, err := Run(t.Context(), pair, flows, Options{Drain: time.Minute, Done: func(n int) { ended = n }})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range list {
		if o.Err != nil || o.Received != flows[i].Bytes || o.Started < flows[i].Start || o.Finished <= o.Started || o.Sent == 0 {
			t.Errorf("flow %d: %+v", i, o)
		}
	}
	if ended != len(flows) {
		t.Errorf("Done was called for %d flows, want %d", ended, len(flows))
	}
}

// TestAborted: a flow that cannot end in time is aborted and reported as
// unfinished.
func TestAborted(t *testing.T) {
	flows := []Flow{{From: "h1", To: "h2", Bytes: 1 << 50}, {From: "h1", To: "h2", Bytes: 10}}
	list, err := Run(t.Context(), pair, flows, Options{Drain: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if o := list[0]; o.Finished != 0 || o.Err == nil || o.Received == 0 {
		t.Errorf("the endless flow: %+v", o)
	}
	if o := list[1]; o.Finished == 0 || o.Err != nil {
		t.Errorf("the short one: %+v", o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, pair, flows[:1], Options{Drain: time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestNoSuchCongestionControl(t *testing.T) {
	_, err := Run(t.Context(), pair, []Flow{{From: "h1", To: "h2", Bytes: 1}}, Options{Congestion: "nonsense", Drain: time.Second})
	if !errors.Is(err, errCongestion) {
		t.Errorf("got %v, want errCongestion", err)
	}
}

// TestTwoVersions: a flow from an IPv4 to an IPv6 host is refused before any is sent.
func TestTwoVersions(t *testing.T) {
	mixed := loopback{"h1": pair["h1"], "h2": netip.MustParseAddr("2001:db8::2")}
	_, err := Run(t.Context(), mixed, []Flow{{From: "h1", To: "h2", Bytes: 1}}, Options{Drain: time.Second})
	const want = "flow from h1 (127.77.0.1) to 2001:db8::2: want addresses of one version of IP"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// datagrams creates a UDP socket.
func datagrams(string) (int, error) {
	return unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
}

// TestRunRDMA sends messages of RoCEv2 in both directions at once.
func TestRunRDMA(t *testing.T) {
	var flows []Flow
	for i := range 20 {
		f := Flow{From: "h1", To: "h2", Bytes: 1 + int64(i*i)*1000, Start: time.Duration(i) * time.Millisecond}
		if i%2 == 1 {
			f.From, f.To = f.To, f.From
		}
		flows = append(flows, f)
	}
	list, err := Run(t.Context(), pair, flows, Options{Drain: time.Minute, RDMA: datagrams})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range list {
		// The loopback interface keeps the order of packets.
		if o.Err != nil || o.Received != flows[i].Bytes || o.Started < flows[i].Start || o.Finished <= o.Started || o.Sent < (flows[i].Bytes+1023)/1024 || o.OutOfOrder != 0 {
			t.Errorf("flow %d: %+v", i, o)
		}
	}
}

// TestRunRDMAEnds: a message without a receiver ends with the drain time, and a service is
// refused.
func TestRunRDMAEnds(t *testing.T) {
	silent := func(host string) (int, error) {
		fd, err := datagrams(host)
		if host == "h2" && err == nil { // packets to it go elsewhere
			err = unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "no-such-device")
		}
		return fd, err
	}
	if _, err := Run(t.Context(), pair, []Flow{{From: "h1", To: "h2", Bytes: 10}}, Options{Drain: time.Second, RDMA: silent}); err == nil {
		t.Error("a socket that cannot be made is accepted")
	}
	far := loopback{"h1": pair["h1"], "h2": netip.MustParseAddr("127.77.0.2")}
	list, err := Run(t.Context(), far, []Flow{{From: "h1", To: "h2", Bytes: 1 << 40}}, Options{Drain: 300 * time.Millisecond, RDMA: datagrams})
	if err != nil || list[0].Finished != 0 || list[0].Err == nil || list[0].Received == 0 {
		t.Errorf("an endless message: %+v, %v", list, err)
	}
	service := Flow{From: "h1", Bytes: 1, Service: &Service{Address: netip.MustParseAddrPort("127.77.0.9:80"), Servers: []string{"h2"}}}
	if _, err := Run(t.Context(), pair, []Flow{service}, Options{Drain: time.Second, RDMA: datagrams}); err == nil || err.Error() != "flow 1 goes to a service: an RDMA connection has one host" {
		t.Errorf("a flow to a service: %v", err)
	}
}
