package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

// A settingSwitch notes the settings that come over Thrift. It refuses settings of port 9,
// register "bad" and counter cell 8.
type settingSwitch struct {
	thrift.Target
	list []string
}

var errRefused = errors.New("refused")

func (s *settingSwitch) note(bad bool, format string, args ...any) error {
	if bad {
		return errRefused
	}
	s.list = append(s.list, fmt.Sprintf(format, args...))
	return nil
}

func (s *settingSwitch) SetSession(id, port, group int) error {
	return s.note(port == 9, "session %d %d %d", id, port, group)
}
func (s *settingSwitch) Session(int) (int, int, bool)    { return -1, -1, false }
func (s *settingSwitch) RegisterSize(string) (int, bool) { return 10, true }
func (s *settingSwitch) CounterSize(string) (int, bool)  { return 10, true }
func (s *settingSwitch) WriteRegister(name string, from, to int, v uint64) error {
	return s.note(name == "bad", "register %s %d %d %d", name, from, to, v)
}
func (s *settingSwitch) WriteCounter(name string, from, to int, packets, bytes uint64) error {
	return s.note(from == 8, "counter %s %d %d %d %d", name, from, to, packets, bytes)
}
func (s *settingSwitch) SetQueueRate(port, priority int, rate uint64) error {
	return s.note(port == 9, "rate %d %d %d", port, priority, rate)
}
func (s *settingSwitch) SetQueueDepth(port, priority, packets int) error {
	return s.note(port == 9, "depth %d %d %d", port, priority, packets)
}

// The settings that a project has for BMv2 reach it over Thrift: of one port or of all, and
// counters cell by cell. A refusal is an error.
func TestSettingsOverThrift(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sw := &settingSwitch{}
	server := thrift.NewServer(sw, 1)
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(l)
	}()
	defer func() {
		server.Close()
		<-served
	}()
	client, err := thrift.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s := thriftSettings{t.Context(), client}
	for _, test := range []struct {
		err  error
		want []string // nil: refused
	}{
		{s.SetSession(5, 2, -1), []string{"session 5 2 -1"}},
		{s.WriteRegister("r", 2, 5, 7), []string{"register r 2 5 7"}},
		{s.WriteRegister("bad", 2, 5, 7), nil},
		{s.WriteCounter("c", 2, 4, 3, 180), []string{"counter c 2 3 3 180", "counter c 3 4 3 180"}},
		{s.WriteCounter("c", 7, 9, 3, 180), []string{"counter c 7 8 3 180", ""}},
		{s.SetQueueRate(3, 1, 1000), []string{"rate 3 1 1000"}},
		{s.SetQueueRate(-1, -1, 1000), []string{"rate -1 -1 1000"}},
		{s.SetQueueRate(9, 0, 1000), nil},
		{s.SetQueueRate(0, 1, 1000), []string{"rate 0 1 1000"}},
		{s.SetQueueDepth(0, 1, 64), []string{"depth 0 1 64"}},
		{s.SetQueueDepth(3, 1, 64), []string{"depth 3 1 64"}},
		{s.SetQueueDepth(-1, -1, 64), []string{"depth -1 -1 64"}},
		{s.SetQueueDepth(9, 0, 64), nil},
	} {
		n := len(test.want)
		refused := n == 0 || test.want[n-1] == ""
		if refused && n > 0 {
			n--
		}
		if len(sw.list) < n || !slices.Equal(sw.list[:n], test.want[:n]) || (test.err != nil) != refused {
			t.Errorf("%q, %v; want %q", sw.list, test.err, test.want)
			break
		}
		sw.list = sw.list[n:]
	}
	if len(sw.list) > 0 {
		t.Errorf("also %q", sw.list)
	}
}

// An interrupt and the end of --for are no errors. The cause of another end, such as a
// server that fails, is.
func TestDrainInterrupted(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct{ cause, want error }{
		{context.Canceled, nil}, {context.DeadlineExceeded, nil}, {broken, broken},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		c, _, _ := console(t)
		n := 0
		err := (&inspectJob{c: c}).drain(ctx, rounds(func() (*view.Round, error) {
			if n == 2 {
				cancel(test.cause)
				return nil, ctx.Err()
			}
			return round(), nil
		}), []func(*view.Round) error{func(*view.Round) error { n++; return nil }})
		if err != test.want || n != 2 {
			t.Errorf("%v: %v after %d rounds, want %v after 2", test.cause, err, n, test.want)
		}
	}
}

// Metrics are served without the page only at an address for other machines that has
// neither a token nor TLS.
func TestMetricsAlone(t *testing.T) {
	for _, test := range []struct {
		plaintext bool
		listen    string
		want      bool
	}{
		{true, "192.0.2.1:9100", true}, {false, "192.0.2.1:9100", false}, {true, "127.0.0.1:9100", false}, {true, "localhost:9100", false},
	} {
		j := &inspectJob{plaintext: test.plaintext}
		j.page.Listen = test.listen
		if got := j.metricsAlone(); got != test.want {
			t.Errorf("%v at %s: %v, want %v", test.plaintext, test.listen, got, test.want)
		}
	}
}

// A certificate of the client needs a file with the certificates of the servers' authority.
func TestClientCertificates(t *testing.T) {
	c, _, _ := console(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flags clientTLS
		want  string
	}{
		{clientTLS{}, ""},
		{clientTLS{cert: "x"}, "--tls-cert and --tls-key want --tls-ca"},
		{clientTLS{key: "x"}, "--tls-cert and --tls-key want --tls-ca"},
		{clientTLS{ca: file}, "reading " + file + ": there is no certificate in it"},
		{clientTLS{ca: file + "x"}, "no such file"},
	} {
		config, err := test.flags.config(c)
		if config != nil || test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: %v, %v; want %q", test.flags, config, err, test.want)
		}
	}
}
