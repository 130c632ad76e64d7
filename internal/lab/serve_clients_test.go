package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// foreign is the experiment of testdata/oracle/lab-clients.jsonl.
const foreign = `topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 1, rate: 1G}}
schemes: [ecmp]
traffic: [{workload: webserver, load-of: hosts}]
loads: [0.4]
seeds: 1
duration: 30ms
`

// A foreignStep is a line of the record: the start of a client, a step of the clock, a message
// on a P4Runtime stream, a P4Runtime call, or a Thrift call.
type foreignStep struct {
	Client  string
	Next    bool
	Switch  string
	Send    json.RawMessage // on the stream
	Receive json.RawMessage
	Call    string
	Request json.RawMessage
	Answer  json.RawMessage
	Code    uint32 // of a refused call
	Program string // plain or wrapped: the request contains the program of the switch
	Thrift  string // the switch
	Bytes   []byte `json:"send_bytes"`
	Reply   []byte `json:"receive_bytes"`
}

// TestServeForeignClients repeats what unmodified controllers sent to a network in
// virtual time, and expects the answers that they accepted: p4runtime-shell, the library
// of the P4 tutorials, p4-utils and simple_switch_CLI, and p4runtime-go-client.
func TestServeForeignClients(t *testing.T) {
	for file, want := range map[string]int{"lab-clients.jsonl": 4, "lab-clients-go.jsonl": 1} {
		t.Run(file, func(t *testing.T) {
			if clients := replay(t, recordedSteps[foreignStep](t, file)); clients != want {
				t.Errorf("%d clients, want %d", clients, want)
			}
		})
	}
}

// replay repeats steps in a run, and returns the number of clients.
func replay(t *testing.T, steps []foreignStep) (clients int) {
	r, pages, _ := serving(&Serve{Every: 10 * time.Millisecond, Wait: 1, Timeout: time.Minute})
	var work sync.WaitGroup
	work.Go(func() {
		page := <-pages
		c := &foreignClient{t: t, page: page, switches: listOf(t, page)}
		for _, s := range steps {
			if s.Client != "" {
				clients++
			}
			c.step(s)
		}
		c.leave()
		if text, code := get(t, page+"/done"); code != http.StatusOK {
			t.Error(text)
		}
	})
	c, err := r.Run(context.Background(), load(t, foreign))
	if err != nil {
		t.Fatal(err)
	}
	work.Wait()
	if alerts := strings.Join(c.Rows[0].Runs[0].Alerts, "\n"); !strings.Contains(alerts, "own controllers drove the switches") {
		t.Error(alerts)
	}
	return clients
}

// recordedSteps reads the steps of a recorded session.
func recordedSteps[T any](t *testing.T, name string) (list []T) {
	t.Helper()
	file, err := os.Open("../../testdata/oracle/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s T
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// connect returns the connection to the server of a switch, which it opens once.
func connect(t *testing.T, conns map[string]*grpc.ClientConn, sw, address string) *grpc.ClientConn {
	if conns[sw] == nil {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Error(err)
		}
		conns[sw] = conn
	}
	return conns[sw]
}

// A foreignClient repeats the steps of one client after the other.
type foreignClient struct {
	t        *testing.T
	page     string
	switches map[string]listed
	conns    map[string]*grpc.ClientConn
	streams  map[string]p4v1.P4Runtime_StreamChannelClient
	thrift   net.Conn
}

func (c *foreignClient) step(s foreignStep) {
	switch {
	case s.Client != "":
		c.leave()
	case s.Next:
		get(c.t, c.page+"/next")
	case s.Thrift != "":
		c.bytes(s)
	case s.Send != nil:
		m := &p4v1.StreamMessageRequest{}
		c.parse(s.Send, m)
		if err := c.stream(s.Switch).Send(m); err != nil {
			c.t.Error(err)
		}
	case s.Receive != nil:
		m, err := c.stream(s.Switch).Recv()
		c.compare(s, m, err, s.Receive, &p4v1.StreamMessageResponse{})
	case s.Call != "":
		c.call(s)
	}
}

// leave closes the connections of a client.
func (c *foreignClient) leave() {
	for _, conn := range c.conns {
		conn.Close()
	}
	if c.thrift != nil {
		c.thrift.Close()
	}
	c.conns, c.streams, c.thrift = map[string]*grpc.ClientConn{}, map[string]p4v1.P4Runtime_StreamChannelClient{}, nil
}

func (c *foreignClient) client(sw string) p4v1.P4RuntimeClient {
	return p4v1.NewP4RuntimeClient(connect(c.t, c.conns, sw, c.switches[sw].Address))
}

func (c *foreignClient) stream(sw string) p4v1.P4Runtime_StreamChannelClient {
	if c.streams[sw] == nil {
		s, err := c.client(sw).StreamChannel(context.Background())
		if err != nil {
			c.t.Error(err)
		}
		c.streams[sw] = s
	}
	return c.streams[sw]
}

func (c *foreignClient) parse(text json.RawMessage, m proto.Message) {
	if err := protojson.Unmarshal(text, m); err != nil {
		c.t.Errorf("%s: %v", text, err)
	}
}

// compare expects a recorded message, or the code of a refused call.
func (c *foreignClient) compare(s foreignStep, got proto.Message, err error, want json.RawMessage, to proto.Message) {
	if s.Code != 0 || err != nil {
		if code := uint32(status.Code(err)); code != s.Code {
			c.t.Errorf("%s %s: code %d (%v), want %d", s.Call, s.Request, code, err, s.Code)
		}
		return
	}
	c.parse(want, to)
	if !proto.Equal(got, to) {
		c.t.Errorf("%s %s:\n got %v\nwant %v", s.Call, s.Request, got, to)
	}
}

func (c *foreignClient) call(s foreignStep) {
	ctx := context.Background()
	client := c.client(s.Switch)
	switch s.Call {
	case "Capabilities":
		got, err := client.Capabilities(ctx, &p4v1.CapabilitiesRequest{})
		c.compare(s, got, err, s.Answer, &p4v1.CapabilitiesResponse{})
	case "Write":
		m := &p4v1.WriteRequest{}
		c.parse(s.Request, m)
		got, err := client.Write(ctx, m)
		c.compare(s, got, err, s.Answer, &p4v1.WriteResponse{})
	case "SetForwardingPipelineConfig":
		m := &p4v1.SetForwardingPipelineConfigRequest{}
		c.parse(s.Request, m)
		m.Config = &p4v1.ForwardingPipelineConfig{P4Info: c.info(s.Switch), P4DeviceConfig: c.program(s.Switch)}
		if s.Program == "wrapped" { // reassign: true, device_data: the program
			head := binary.AppendUvarint([]byte{0x08, 0x01, 0x1a}, uint64(len(m.Config.P4DeviceConfig)))
			m.Config.P4DeviceConfig = append(head, m.Config.P4DeviceConfig...)
		}
		got, err := client.SetForwardingPipelineConfig(ctx, m)
		c.compare(s, got, err, s.Answer, &p4v1.SetForwardingPipelineConfigResponse{})
	case "GetForwardingPipelineConfig":
		m := &p4v1.GetForwardingPipelineConfigRequest{}
		c.parse(s.Request, m)
		got, err := client.GetForwardingPipelineConfig(ctx, m)
		if !proto.Equal(got.GetConfig().GetP4Info(), c.info(s.Switch)) {
			c.t.Errorf("%s: another P4Info", s.Switch)
		}
		got.Config = &p4v1.ForwardingPipelineConfig{}
		c.compare(s, got, err, s.Answer, &p4v1.GetForwardingPipelineConfigResponse{})
	case "Read":
		m := &p4v1.ReadRequest{}
		c.parse(s.Request, m)
		r, err := client.Read(ctx, m)
		got := &p4v1.ReadResponse{}
		for err == nil {
			var part *p4v1.ReadResponse
			if part, err = r.Recv(); err == nil {
				got.Entities = append(got.Entities, part.GetEntities()...)
			}
		}
		if err == io.EOF {
			err = nil
		}
		c.compare(s, got, err, s.Answer, &p4v1.ReadResponse{})
	default:
		c.t.Errorf("unknown call %q", s.Call)
	}
}

func (c *foreignClient) info(sw string) *configv1.P4Info {
	text, _ := get(c.t, c.switches[sw].P4Info)
	info := &configv1.P4Info{}
	if err := prototext.Unmarshal([]byte(text), info); err != nil {
		c.t.Error(err)
	}
	return info
}

func (c *foreignClient) program(sw string) []byte {
	text, _ := get(c.t, c.switches[sw].Program)
	return []byte(text)
}

// bytes makes a Thrift call with the recorded bytes.
func (c *foreignClient) bytes(s foreignStep) {
	if c.thrift == nil {
		var err error
		if c.thrift, err = net.Dial("tcp", c.switches[s.Thrift].Thrift); err != nil {
			c.t.Fatal(err)
		}
		c.thrift.SetDeadline(time.Now().Add(time.Minute))
	}
	if s.Program != "" { // a message with one string
		q := []byte{0x80, 1, 0, 1}
		text := c.program(s.Thrift)
		q = append(binary.BigEndian.AppendUint32(q, uint32(len(s.Call))), s.Call...)
		q = append(q, 0, 0, 0, 0, 11, 0, 1)
		s.Bytes = append(append(binary.BigEndian.AppendUint32(q, uint32(len(text))), text...), 0)
	}
	if _, err := c.thrift.Write(s.Bytes); err != nil {
		c.t.Error(err)
	}
	got := make([]byte, len(s.Reply))
	if n, err := io.ReadFull(c.thrift, got); err != nil || !bytes.Equal(got, s.Reply) {
		c.t.Errorf("%s: %v\n got %q\nwant %q", s.Call, err, got[:n], s.Reply)
	}
}
