package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/sim"
)

// weighted is a network in which a link slows down and p4lb's controller does nothing.
const weighted = `topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}
schemes: [wcmp]
traffic: [{workload: webserver, load-of: hosts}]
loads: [0.4]
seeds: 1
duration: 30ms
faults: [{at: 10ms, link: l2-s2, rate: 250Mbps}]
`

// slowPath are the weights of the two paths once the link is slow.
var slowPath = []uint64{1000, 250}

// A remote is a controller of one switch over P4Runtime.
type remote struct {
	t      *testing.T
	conn   *grpc.ClientConn
	client p4v1.P4RuntimeClient
	stream p4v1.P4Runtime_StreamChannelClient
	device uint64
}

// listed is a switch in the list of the page.
type listed struct {
	Name, Role, Address string
	Device              uint64 `json:"device_id"`
	P4Info, Program     string
	Thrift, BfRt        string
	Schema              string `json:"bfrt_info"`
	P4Name              string `json:"p4_name"`
}

func get(t *testing.T, url string) (string, int) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		return err.Error(), 0
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err.Error(), 0
	}
	return string(text), r.StatusCode
}

// listOf returns the switches that the page lists.
func listOf(t *testing.T, page string) map[string]listed {
	t.Helper()
	text, _ := get(t, page)
	var list struct{ Switches []listed }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Errorf("%v in %q", err, text)
	}
	out := map[string]listed{}
	for _, s := range list.Switches {
		out[s.Name] = s
	}
	return out
}

// dial makes a test the primary controller of a switch.
func dial(t *testing.T, s listed) *remote {
	t.Helper()
	conn, err := grpc.NewClient(s.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &remote{t: t, conn: conn, client: p4v1.NewP4RuntimeClient(conn), device: s.Device}
	if c.stream, err = c.client.StreamChannel(context.Background()); err != nil {
		t.Fatal(err)
	}
	err = c.stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{Arbitration: &p4v1.MasterArbitrationUpdate{
		DeviceId: s.Device, ElectionId: &p4v1.Uint128{Low: 1},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.stream.Recv()
	if err != nil || m.GetArbitration().GetStatus().GetCode() != 0 {
		t.Errorf("%s: %v %v: want to be primary", s.Name, m, err)
	}
	return c
}

// config returns the program of the switch.
func (c *remote) config() *p4v1.ForwardingPipelineConfig {
	c.t.Helper()
	r, err := c.client.GetForwardingPipelineConfig(context.Background(), &p4v1.GetForwardingPipelineConfigRequest{DeviceId: c.device})
	if err != nil {
		c.t.Fatal(err)
	}
	return r.GetConfig()
}

// read returns the entities that match a request.
func (c *remote) read(e *p4v1.Entity) []*p4v1.Entity {
	c.t.Helper()
	r, err := c.client.Read(context.Background(), &p4v1.ReadRequest{DeviceId: c.device, Entities: []*p4v1.Entity{e}})
	var list []*p4v1.Entity
	for err == nil {
		var m *p4v1.ReadResponse
		if m, err = r.Recv(); err == nil {
			list = append(list, m.GetEntities()...)
		}
	}
	if err != io.EOF {
		c.t.Error(err)
	}
	return list
}

func (c *remote) write(list ...*p4v1.Update) error {
	_, err := c.client.Write(context.Background(), &p4v1.WriteRequest{DeviceId: c.device, ElectionId: &p4v1.Uint128{Low: 1}, Updates: list})
	return err
}

// reweigh changes the weights of all groups, as a controller over P4Runtime.
func (c *remote) reweigh(weights []uint64) {
	c.t.Helper()
	info := c.config().GetP4Info()
	for _, t := range info.GetTables() {
		if !strings.HasSuffix(t.GetPreamble().GetName(), ".candidates") {
			continue
		}
		for _, e := range c.read(&p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: t.GetPreamble().GetId()}}}) {
			entry := e.GetTableEntry()
			for _, a := range info.GetActions() {
				if a.GetPreamble().GetId() != entry.GetAction().GetAction().GetActionId() {
					continue
				}
				for i, p := range entry.GetAction().GetAction().GetParams() {
					for slot, w := range weights {
						if a.GetParams()[i].GetName() == fmt.Sprint("weight_", slot) {
							p.Value = new(big.Int).SetUint64(w).Bytes()
						}
					}
				}
			}
			if err := c.write(&p4v1.Update{Type: p4v1.Update_MODIFY, Entity: e}); err != nil {
				c.t.Error(err)
			}
		}
	}
}

// reweighDirectly is the same by calls to the data plane.
func reweighDirectly(t *testing.T, sw *dataplane.Switch, weights []uint64) {
	t.Helper()
	for _, p := range sw.Config().Pipelines {
		for _, table := range p.Tables {
			if !strings.HasSuffix(table.Name, ".candidates") {
				continue
			}
			entries, err := sw.Tables().Entries(table.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				i := slices.IndexFunc(sw.Config().Actions, func(a *bmv2.Action) bool { return a.Name == e.Target.Action.Name })
				for k, p := range sw.Config().Actions[i].RuntimeData {
					for slot, w := range weights {
						if p.Name == fmt.Sprint("weight_", slot) {
							e.Target.Action.Params[k] = new(big.Int).SetUint64(w).Bytes()
						}
					}
				}
				h, err := sw.Tables().Find(table.Name, e.Match, e.Priority)
				if err == nil {
					err = sw.Tables().Modify(table.Name, h, e.Target)
				}
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// page returns a runner that serves the first row, and a channel with the address of
// its page at the beginning of each run.
func serving(o *Serve) (*Runner, chan string, func() string) {
	pages := make(chan string, 16)
	var mu sync.Mutex
	var lines []string
	o.Log = func(text string) {
		if _, rest, ok := strings.Cut(text, ": http://"); ok && strings.HasPrefix(text, "serving") {
			page, _, _ := strings.Cut(rest, " ")
			pages <- "http://" + page
		}
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, text)
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	return &Runner{Serve: o}, pages, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(lines, "\n")
	}
}

// TestServeMoments: a controller over P4Runtime that changes weights at a moment has the
// same results as code that changes them in the data plane at that time.
func TestServeMoments(t *testing.T) {
	direct := func(at time.Duration) *Result {
		return run(t, &Runner{Begin: func(v *View) error {
			if at > 0 {
				v.Net.At(at, func() {
					for _, name := range []string{"l1", "l2"} {
						reweighDirectly(t, v.Net.Switch(name).Program(), slowPath)
					}
				})
			}
			return nil
		}}, load(t, weighted)).Rows[0].Runs[0]
	}
	alone, want := direct(0), direct(20*time.Millisecond)
	if want.Metrics["fct-mean"] == alone.Metrics["fct-mean"] {
		t.Fatal("the weights change nothing")
	}
	r, pages, log := serving(&Serve{Every: 10 * time.Millisecond, Wait: 1, Timeout: time.Minute})
	var work sync.WaitGroup
	work.Go(func() {
		page := <-pages
		list := listOf(t, page)
		if info, _ := get(t, list["l1"].P4Info); !strings.Contains(info, "candidates") {
			t.Errorf("P4Info: %.100s", info)
		}
		l1, l2 := dial(t, list["l1"]), dial(t, list["l2"])
		for {
			text, _ := get(t, page+"/next")
			var now struct {
				NS    time.Duration `json:"time_ns"`
				Ended bool
			}
			if err := json.Unmarshal([]byte(text), &now); err != nil || now.Ended {
				if err != nil {
					t.Error(text)
				}
				return
			}
			if now.NS == 20*time.Millisecond {
				l1.reweigh(slowPath)
				l2.reweigh(slowPath)
			}
		}
	})
	c, err := r.Run(context.Background(), load(t, weighted))
	if err != nil {
		t.Fatal(err)
	}
	work.Wait()
	got := c.Rows[0].Runs[0]
	if got.Metrics["fct-mean"] != want.Metrics["fct-mean"] || got.Hops != want.Hops {
		t.Errorf("over P4Runtime %v ms and %d hops, directly %v ms and %d", got.Metrics["fct-mean"], got.Hops, want.Metrics["fct-mean"], want.Hops)
	}
	if alerts := strings.Join(got.Alerts, "\n"); !strings.Contains(alerts, "own controllers drove the switches") || strings.Contains(alerts, "rejected") {
		t.Error(alerts)
	}
	if got.Spec == want.Spec {
		t.Error("a run without controller has the same key")
	}
	if s := log(); !strings.Contains(s, "l2: P4Runtime at 127.0.0.1:") || !strings.Contains(s, "device id 2") {
		t.Error(s)
	}
}

// TestServeProgram: a controller pushes the program, which empties the tables, and no
// packet is lost without a reason.
func TestServeProgram(t *testing.T) {
	r, pages, _ := serving(&Serve{Every: 5 * time.Millisecond, Wait: 1, Timeout: time.Minute})
	var work sync.WaitGroup
	work.Go(func() {
		page := <-pages
		list := listOf(t, page)
		s1 := dial(t, list["s1"])
		get(t, page+"/next?name=a") // at 5 ms packets are on their way
		_, err := s1.client.SetForwardingPipelineConfig(context.Background(), &p4v1.SetForwardingPipelineConfigRequest{
			DeviceId: s1.device, ElectionId: &p4v1.Uint128{Low: 1}, Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, Config: s1.config(),
		})
		if err != nil {
			t.Error(err)
		}
		if got, code := get(t, page+"/done?name=a"); code != http.StatusOK {
			t.Error(got)
		}
	})
	c, err := r.Run(context.Background(), load(t, weighted))
	if err != nil {
		t.Fatal(err)
	}
	work.Wait()
	if lost := c.Rows[0].Runs[0].Lost; lost["program replaced"]+lost["program"] == 0 {
		t.Errorf("%v: want packets that the empty switch drops", lost)
	}
}

// TestServersEnd: the servers of a run close its controllers' streams and their ports when it ends.
// With port 0 each server has a free port, and not necessarily one after the port of the page.
func TestServersEnd(t *testing.T) {
	r, pages, _ := serving(&Serve{Every: 5 * time.Millisecond, Wait: 1, Timeout: time.Minute})
	var work sync.WaitGroup
	var l1 *remote
	var address string
	work.Go(func() {
		page := <-pages
		list := listOf(t, page)
		l1, address = dial(t, list["l1"]), list["l1"].Address
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(page, "http://"))
		first, _ := strconv.Atoi(port)
		inOrder := 0
		for i, name := range []string{"l1", "l2", "s1", "s2"} {
			if strings.HasSuffix(list[name].Address, fmt.Sprint(":", first+1+i)) {
				inOrder++
			}
		}
		if inOrder == 4 {
			t.Errorf("the servers have the ports after %d", first)
		}
		get(t, page+"/done")
	})
	if _, err := r.Run(t.Context(), load(t, weighted)); err != nil {
		t.Fatal(err)
	}
	work.Wait()
	ended := make(chan error, 1)
	go func() {
		_, err := l1.stream.Recv()
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the stream of a controller goes on")
		}
	case <-time.After(30 * time.Second):
		t.Error("the stream of a controller is still open")
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Errorf("%s is still served", address)
	}
}

// TestServeFaults: controllers that do not come, stop answering, leave, take in no answer
// or write nonsense are named within a second of real time, and nothing hangs.
func TestServeFaults(t *testing.T) {
	for name, c := range map[string]struct {
		control func(t *testing.T, page string)
		want    string
		serve   *Serve
	}{
		"nobody":    {func(*testing.T, string) {}, "no more than 0 of 1 controllers have called", &Serve{Wait: 1, Start: 300 * time.Millisecond}},
		"no stream": {func(*testing.T, string) {}, "no controller has opened a stream", &Serve{Start: 300 * time.Millisecond}},
		"silent": {func(t *testing.T, page string) {
			for _, path := range []string{"/next?name=a%0Alevel", "/done?name=%1b"} {
				if text, code := get(t, page+path); code != http.StatusBadRequest {
					t.Errorf("%s: %d %s", path, code, text)
				}
			}
			get(t, page+"/next?name=mine")
		}, "controller mine has not answered for 1s at 10ms", &Serve{Wait: 1}},
		"gone": {func(t *testing.T, page string) {
			at := strings.TrimPrefix(page, "http://")
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET /next?name=mine HTTP/1.1\r\nHost: %s\r\n\r\n", at)
			time.Sleep(100 * time.Millisecond)
		}, "controller mine has gone at 0s: it closed its connection while it waited for /next", &Serve{Wait: 2}},
		"unread": {func(t *testing.T, page string) {
			l1 := dial(t, listOf(t, page)["l1"])
			all := &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{}}}
			_, err := l1.client.Read(context.Background(), &p4v1.ReadRequest{DeviceId: l1.device, Entities: slices.Repeat([]*p4v1.Entity{all}, 1<<13)})
			if err != nil {
				t.Error(err)
			}
			time.Sleep(300 * time.Millisecond)
			get(t, page+"/next")
		}, "does not take in the answer to its Read to l1 at 0s", &Serve{Wait: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c.serve.Every = 10 * time.Millisecond
			r, pages, _ := serving(c.serve)
			var work sync.WaitGroup
			work.Go(func() { c.control(t, <-pages) })
			began := time.Now()
			_, err := r.Run(context.Background(), load(t, weighted))
			work.Wait()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestServeBeside: without calls of /next the clock stands until real time catches up, and
// rejected requests are named.
func TestServeBeside(t *testing.T) {
	r, pages, log := serving(&Serve{Every: 5 * time.Millisecond, Slow: 2})
	var work sync.WaitGroup
	work.Go(func() {
		l1 := dial(t, listOf(t, <-pages)["l1"])
		err := l1.write(&p4v1.Update{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: 77}}}})
		if err == nil {
			t.Error("an entry of no table is accepted")
		}
		if err := l1.stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{Metadata: []*p4v1.PacketMetadata{{}}}}}); err != nil {
			t.Error(err)
		}
		if m, err := l1.stream.Recv(); err != nil || m.GetError() == nil {
			t.Errorf("%v %v: want an error on the stream", m, err)
		}
		l1.conn.Close()
	})
	began := time.Now()
	c, err := r.Run(context.Background(), load(t, weighted))
	if err != nil {
		t.Fatal(err)
	}
	work.Wait()
	got := c.Rows[0].Runs[0]
	if took := time.Since(began); took < 2*(got.Elapsed-5*time.Millisecond) {
		t.Errorf("%v at half of the speed of real time took %v", got.Elapsed, took)
	}
	if alone := run(t, &Runner{}, load(t, weighted)).Rows[0].Runs[0]; got.Hops != alone.Hops {
		t.Errorf("%d hops, %d without the controller", got.Hops, alone.Hops)
	}
	for _, want := range []string{"rejected: Write of 127.0.0.1:", "to l1 at", "there is no table 0x4d", "rejected: message of 127.0.0.1:", "no controller is left at"} {
		if s := log(); !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	if alerts := strings.Join(got.Alerts, "\n"); !strings.Contains(alerts, "2 rejected") && !strings.Contains(alerts, "1 requests, 2 rejected") {
		t.Error(alerts)
	}
}

// TestServeStandstill: a controller that sends requests forever and never finishes a moment
// is reported once per moment.
func TestServeStandstill(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var lines []string
	d := &served{
		o:      &Serve{Wait: 1, Timeout: time.Second, Log: func(s string) { lines = append(lines, s) }},
		listen: []net.Listener{l}, callers: map[string]*caller{"mine": {}}, moments: 2,
		heard: time.Now(), opened: time.Now().Add(-standstill*time.Second - time.Second),
	}
	for range 3 {
		if ok, _, err := d.settled(5 * time.Millisecond); ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "the clock has stood at 5ms for 11") || !strings.Contains(lines[0], "controller mine") {
		t.Errorf("%q", lines)
	}
}

// TestServeManyPacketOuts: packets that wait for the end of a moment have a limit in bytes,
// and those beyond it count as rejected.
func TestServeManyPacketOuts(t *testing.T) {
	var lines []string
	n := &servedNode{served: &served{o: &Serve{Log: func(s string) { lines = append(lines, s) }}}, sw: &sim.Switch{Name: "l1"}}
	frame := make([]byte, maxFrameBytes/4)
	for range 6 {
		n.PacketOut(frame)
	}
	if len(n.frames) != 4 || n.refused != 2 || !strings.Contains(n.first, "packet-out to l1 at 0s: want at most 16384 packets and 64 MiB") {
		t.Errorf("%d packets wait, %d are rejected: %s", len(n.frames), n.refused, n.first)
	}
	for range 30 {
		n.PacketOut(frame)
	}
	if last := lines[len(lines)-1]; len(lines) != 21 || !strings.Contains(last, "further lines") {
		t.Errorf("%d lines, the last %q", len(lines), last)
	}
}

// TestServeMalformed: a malformed Thrift call closes its connection and is logged with the switch.
func TestServeMalformed(t *testing.T) {
	var log bytes.Buffer
	r, pages, _ := serving(&Serve{Every: 10 * time.Millisecond, Wait: 1, Timeout: time.Minute, Warnings: slog.New(slog.NewTextHandler(&log, nil))})
	var work sync.WaitGroup
	work.Go(func() {
		page := <-pages
		defer get(t, page+"/done?name=a")
		c, err := net.Dial("tcp", listOf(t, page)["l1"].Thrift)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Write([]byte("\xff\xff\xff\xffno call")); err != nil {
			t.Error(err)
		}
		if text, err := io.ReadAll(c); err != nil || len(text) > 0 {
			t.Errorf("the connection ends with %q, %v", text, err)
		}
	})
	run(t, r, load(t, weighted))
	work.Wait()
	if got := log.String(); strings.Count(got, "malformed Thrift call: closed the connection") != 1 || !strings.Contains(got, "switch=l1") {
		t.Errorf("log %q: want one line about the malformed call", got)
	}
}
