package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// onTofino is the experiment of testdata/oracle/lab-bfrt.jsonl.
var onTofino = strings.Replace(weighted, "[wcmp]", "[wcmp@tna]", 1)

// TestServeBfRt repeats the requests of the SDE's Python client to a network in virtual
// time, and expects the recorded answers. The client shifts weights at 20 ms, which has
// the same results as code that does it in the data plane, in each of two runs.
func TestServeBfRt(t *testing.T) {
	const share = 204 // of 255: the recorded weight of the faster path
	direct := func(at time.Duration) *Result {
		return run(t, &Runner{Begin: func(v *View) error {
			if at > 0 {
				v.Net.At(at, func() {
					for _, name := range []string{"l1", "l2"} {
						shift(t, v.Net.Switch(name).Program(), share)
					}
				})
			}
			return nil
		}}, load(t, onTofino)).Rows[0].Runs[0]
	}
	alone, want := direct(0), direct(20*time.Millisecond)
	if want.Metrics["fct-mean"] == alone.Metrics["fct-mean"] {
		t.Fatal("the weights change nothing")
	}
	var results [][]byte
	for range 2 {
		r, pages, log := serving(&Serve{Every: 10 * time.Millisecond, Wait: 1, Timeout: time.Minute, BfRt: true})
		var work sync.WaitGroup
		work.Go(func() {
			page := <-pages
			c := newBfrtClient(t, page)
			defer c.leave()
			c.describe()
			for _, s := range recordedSteps[bfrtStep](t, "lab-bfrt.jsonl") {
				c.step(s)
			}
			if text, code := get(t, page+"/done"); code != http.StatusOK {
				t.Error(text)
			}
		})
		c, err := r.Run(context.Background(), load(t, onTofino))
		if err != nil {
			t.Fatal(err)
		}
		work.Wait()
		if line := regexp.MustCompile(`(?m)^  l1: BfRt at 127\.0\.0\.1:\d+, device 0, program \S+, schema http://127\.0\.0\.1:\d+/leaf\.bf-rt\.json$`); !line.MatchString(log()) || strings.Contains(log(), "P4Runtime at") {
			t.Errorf("the log is\n%s", log())
		}
		got := c.Rows[0].Runs[0]
		if got.Metrics["fct-mean"] != want.Metrics["fct-mean"] || got.Hops != want.Hops {
			t.Errorf("over BfRt %v ms and %d hops, directly %v ms and %d", got.Metrics["fct-mean"], got.Hops, want.Metrics["fct-mean"], want.Hops)
		}
		if alerts := strings.Join(got.Alerts, "\n"); !strings.Contains(alerts, "2 rejected, first Write to l1 at 20ms: part 1: Already exists") {
			t.Error(alerts)
		}
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, text)
	}
	if !bytes.Equal(results[0], results[1]) {
		t.Errorf("two runs differ:\n%s\n%s", results[0], results[1])
	}
}

// shift sets the end of the first path's share in all groups.
func shift(t *testing.T, sw *dataplane.Switch, end int64) {
	t.Helper()
	const table = "LbIngress.grids"
	entries, err := sw.Tables().Entries(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		h, err := sw.Tables().Find(table, e.Match, e.Priority)
		if err == nil {
			e.Target.Action.Params[0] = big.NewInt(end).Bytes()
			err = sw.Tables().Modify(table, h, e.Target)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// A bfrtStep is a line of the record: a step of the clock, a message on a stream, or a call.
type bfrtStep struct {
	Next                           bool
	Switch, Call                   string
	Send, Receive, Request, Answer json.RawMessage
	Code                           uint32 // of a refused call
}

// A bfrtClient repeats recorded steps.
type bfrtClient struct {
	t        *testing.T
	page     string
	switches map[string]listed
	conns    map[string]*grpc.ClientConn
	streams  map[string]wire.StreamClient
}

func newBfrtClient(t *testing.T, page string) *bfrtClient {
	return &bfrtClient{t, page, listOf(t, page), map[string]*grpc.ClientConn{}, map[string]wire.StreamClient{}}
}

func (c *bfrtClient) leave() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

// describe checks the list on the page.
func (c *bfrtClient) describe() {
	l1 := c.switches["l1"]
	if l1.Address != "" || l1.Thrift != "" || l1.Device != 0 {
		c.t.Errorf("%+v: want BfRt alone, and device 0", l1)
	}
	if text, _ := get(c.t, l1.Schema); !strings.Contains(text, "LbIngress.grids") {
		c.t.Errorf("%s: %.100s", l1.Schema, text)
	}
}

func (c *bfrtClient) client(sw string) wire.Client {
	return wire.Client{Conn: connect(c.t, c.conns, sw, c.switches[sw].BfRt)}
}

func (c *bfrtClient) stream(sw string) wire.StreamClient {
	client := c.client(sw)
	if c.streams[sw] == nil {
		s, err := client.StreamChannel(context.Background())
		if err != nil {
			c.t.Error(err)
		}
		c.streams[sw] = s
	}
	return c.streams[sw]
}

// subscribe opens the stream of a switch and subscribes to notifications.
func (c *bfrtClient) subscribe(sw string, to *wire.Subscribe_Notifications) wire.StreamClient {
	stream := c.stream(sw)
	err := stream.Send(&wire.StreamMessageRequest{ClientId: 1, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{Notifications: to}}})
	if err != nil {
		c.t.Error(err)
	}
	if m, err := stream.Recv(); err != nil || m.GetSubscribe().GetStatus().GetCode() != 0 {
		c.t.Errorf("%v %v", m, err)
	}
	return stream
}

// parse reads a message. PROGRAM stands for the name of the program.
func (c *bfrtClient) parse(sw string, text json.RawMessage, m proto.Message) {
	if err := protojson.Unmarshal(bytes.ReplaceAll(text, []byte("PROGRAM"), []byte(c.switches[sw].P4Name)), m); err != nil {
		c.t.Errorf("%s: %v", text, err)
	}
}

func (c *bfrtClient) step(s bfrtStep) {
	switch {
	case s.Next:
		get(c.t, c.page+"/next")
	case s.Send != nil:
		m := &wire.StreamMessageRequest{}
		c.parse(s.Switch, s.Send, m)
		if err := c.stream(s.Switch).Send(m); err != nil {
			c.t.Error(err)
		}
	case s.Receive != nil:
		m, err := c.stream(s.Switch).Recv()
		c.compare(s, m, err, s.Receive, &wire.StreamMessageResponse{})
	case s.Call != "":
		c.call(s)
	}
}

func (c *bfrtClient) compare(s bfrtStep, got proto.Message, err error, want json.RawMessage, to proto.Message) {
	if s.Code != 0 || err != nil {
		if code := uint32(status.Code(err)); code != s.Code {
			c.t.Errorf("%s %s: code %d (%v), want %d", s.Call, s.Request, code, err, s.Code)
		}
		return
	}
	c.parse(s.Switch, want, to)
	if !proto.Equal(got, to) {
		c.t.Errorf("%s %s:\n got %v\nwant %v", s.Call, s.Request, got, to)
	}
}

func (c *bfrtClient) call(s bfrtStep) {
	ctx, client := context.Background(), c.client(s.Switch)
	switch s.Call {
	case "Write":
		m := &wire.WriteRequest{}
		c.parse(s.Switch, s.Request, m)
		got, err := client.Write(ctx, m)
		c.compare(s, got, err, s.Answer, &wire.WriteResponse{})
	case "SetForwardingPipelineConfig":
		m := &wire.SetForwardingPipelineConfigRequest{}
		c.parse(s.Switch, s.Request, m)
		got, err := client.SetForwardingPipelineConfig(ctx, m)
		c.compare(s, got, err, s.Answer, &wire.SetForwardingPipelineConfigResponse{})
	case "GetForwardingPipelineConfig": // the answer has the schemas
		m := &wire.GetForwardingPipelineConfigRequest{}
		c.parse(s.Switch, s.Request, m)
		got, err := client.GetForwardingPipelineConfig(ctx, m, grpc.MaxCallRecvMsgSize(1<<28))
		if err != nil || len(got.GetConfig()) != 1 || got.GetConfig()[0].GetP4Name() != c.switches[s.Switch].P4Name {
			c.t.Errorf("%v: %v", got.GetConfig(), err)
		}
	case "Read":
		m := &wire.ReadRequest{}
		c.parse(s.Switch, s.Request, m)
		r, err := client.Read(ctx, m)
		got := &wire.ReadResponse{}
		for err == nil {
			var part *wire.ReadResponse
			if part, err = r.Recv(); err == nil {
				got.Entities = append(got.Entities, part.GetEntities()...)
			}
		}
		if err == io.EOF {
			err = nil
		}
		c.compare(s, got, err, s.Answer, &wire.ReadResponse{})
	default:
		c.t.Errorf("unknown call %q", s.Call)
	}
}

// TestServeBfRtRefused: BfRt is for programs for Tofino with the ports of one pipe.
func TestServeBfRtRefused(t *testing.T) {
	for row, want := range map[string]string{
		"wcmp":     "serving BfRt: wcmp is for v1model: want a scheme for Tofino, such as ecmp@tna",
		"ecmp@tna": "serving BfRt: switch l1 has port 72: want ports below 72, because a simulated chip has one pipe",
	} {
		hosts := 1
		if row == "ecmp@tna" {
			hosts = 70
		}
		r, _, _ := serving(&Serve{Every: 10 * time.Millisecond, BfRt: true})
		_, err := r.Run(context.Background(), load(t, fmt.Sprintf("topology: {leaf-spine: {leaves: 2, spines: 1, hosts: %d}}\nschemes: [%s]\nseeds: 1\nloads: [0.4]\n", hosts, row)))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", row, err, want)
		}
	}
}

// TestServeBfRtNotices: when the clock stops next, a client is notified of a port that
// fails or works again.
func TestServeBfRtNotices(t *testing.T) {
	r, pages, _ := serving(&Serve{Every: 10 * time.Millisecond, Wait: 1, Timeout: time.Minute, BfRt: true})
	var work sync.WaitGroup
	work.Go(func() {
		page := <-pages
		c := newBfrtClient(t, page)
		defer c.leave()
		client := c.client("l1")
		stream := c.subscribe("l1", &wire.Subscribe_Notifications{EnablePortStatusChangeNotifications: true})
		const ports = 0xff010001
		_, err := client.Write(context.Background(), &wire.WriteRequest{
			Target: &wire.TargetDevice{PipeId: wire.AllPipes}, ClientId: 1, P4Name: c.switches["l1"].P4Name,
			Updates: []*wire.Update{{Type: wire.Update_INSERT, Entity: &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{
				TableId: ports, Attribute: &wire.TableAttribute_PortStatusNotify{PortStatusNotify: &wire.PortStatusChg{Enable: true}},
			}}}}},
		})
		if err != nil {
			t.Error(err)
		}
		for _, up := range []bool{false, true} { // at 10 ms and 20 ms
			get(t, page+"/next")
			m, err := stream.Recv()
			n := m.GetPortStatusChangeNotification()
			if port := n.GetTableEntry().GetKey().GetFields()[0].GetExact().GetValue(); err != nil || n.GetPortUp() != up || !bytes.Equal(port, []byte{0, 0, 0, 3}) {
				t.Errorf("%v %v: want port 3 up %v", m, err, up)
			}
		}
		get(t, page+"/done")
	})
	text := strings.Replace(onTofino, "{at: 10ms, link: l2-s2, rate: 250Mbps}", "{at: 4ms, until: 14ms, link: l1-s1, down: true}", 1)
	if _, err := r.Run(context.Background(), load(t, text)); err != nil {
		t.Fatal(err)
	}
	work.Wait()
}
