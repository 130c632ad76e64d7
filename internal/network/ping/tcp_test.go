package ping

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// machine has this machine's network in place of a host's, but for one host.
type machine struct{}

func (machine) In(host string, f func() error) error {
	if host == "gone" {
		return errors.New("there is no host gone")
	}
	return f()
}

// TestTCP: a connection passes if the receiver has the address and the sender is there.
func TestTCP(t *testing.T) {
	host := func(name, ip string) *fabric.Host { return &fabric.Host{Name: name, IP: netip.MustParsePrefix(ip)} }
	a, far, gone := host("a", "127.0.0.1/8"), host("far", "192.0.2.1/24"), host("gone", "127.0.0.1/8")
	got := TCP(t.Context(), machine{}, []Pair{{a, a}, {a, far}, {gone, a}, {a, gone}})
	if want := []bool{true, false, false, false}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// If none of the first pairs passes, no other is tried.
	list := append(slices.Repeat([]Pair{{a, far}}, dials), Pair{a, a})
	if got := TCP(t.Context(), machine{}, list); slices.Contains(got, true) {
		t.Error(got)
	}
}
