package thrift

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	wire "github.com/apache/thrift/lib/go/thrift"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// A recorded is a call of a simple_switch client with the reply of
// simple_switch. A struct is an object with the fields "ID:TYPE"; bytes that
// are not text are {"hex": …}, the BMv2 JSON of a program is {"program": FILE}.
type recorded struct {
	Session string          // starts a session with a switch in its initial state
	Swap    bool            // the switch was started with --enable-swap
	Call    string          // service:method
	In, Out json.RawMessage // the arguments, and the result with its fields
}

// TestOracle replays calls that simple_switch_CLI and other clients made to
// simple_switch against this switch with the same program, and expects the same
// replies: results, handles, codes of exceptions.
func TestOracle(t *testing.T) {
	var c *caller
	calls, methods := 0, map[string]bool{}
	for i, r := range append(oracle(t, "thrift"), oracle(t, "thrift-swap")...) {
		n := i + 1
		switch {
		case r.Session != "":
			c = newCaller(t, serveProgram(t, r.Swap))
			continue
		case r.Call == "": // a description of the file
			continue
		}
		got, want := settled(t, c.call(r.Call, r.In)), settled(t, withPrograms(t, decode(t, r.Out)))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("line %d: %s %s\n got %v\nwant %v", n, r.Call, r.In, got, want)
		}
		calls++
		methods[r.Call] = true
	}
	if calls < 630 || len(methods) < 73 {
		t.Errorf("%d calls of %d methods", calls, len(methods))
	}
}

// oracle reads the recorded calls, one per line.
func oracle(t testing.TB, name string) (list []recorded) {
	t.Helper()
	file, err := os.Open("../../../testdata/oracle/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("line %d: %v", len(list)+1, err)
		}
		list = append(list, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func compiled(t testing.TB, file string) *p4.Program {
	t.Helper()
	p, err := p4.Compile(os.DirFS("testdata"), file, p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newDevice returns a switch with a program, by default the program of the sessions.
func newDevice(t testing.TB, program ...string) *p4rt.Device {
	t.Helper()
	p := compiled(t, append(program, "session.p4")[0])
	dev, err := p4rt.NewDevice(p4rt.DeviceOptions{Load: func(program []byte, o dataplane.Options) (*dataplane.Switch, error) {
		c, err := bmv2.Load(program)
		if err != nil {
			return nil, err
		}
		return dataplane.New(c, o)
	}})
	if err != nil {
		t.Fatal(err)
	}
	server, err := p4rt.NewServer(dev, p4rt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Load(p.JSON(), p.P4Info); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		server.Stop(ctx)
		dev.Close()
	})
	return dev
}

// serveProgram starts a server for a switch with the program of the sessions.
func serveProgram(t *testing.T, swap bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(newDevice(t), 0)
	if swap {
		s.AllowSwap()
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// A caller makes arbitrary calls with Thrift's own protocol.
type caller struct {
	t       *testing.T
	in, out wire.TProtocol
}

func newCaller(t *testing.T, address string) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	socket := wire.NewTSocketFromConnConf(conn, nil)
	return &caller{
		t: t, in: wire.NewTBinaryProtocolConf(wire.NewTBufferedTransport(socket, 1<<12), nil),
		out: wire.NewTBinaryProtocolConf(wire.NewTBufferedTransport(socket, 1<<12), nil),
	}
}

func (c *caller) call(method string, in json.RawMessage) object {
	c.t.Helper()
	typ, reply := c.exchange(method, in)
	if typ != wire.REPLY {
		c.t.Fatalf("%s %s: message type %d, %v", method, in, typ, reply)
	}
	return reply
}

func (c *caller) exchange(method string, in json.RawMessage) (typ wire.TMessageType, reply object) {
	c.t.Helper()
	ctx := c.t.Context()
	must := func(err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatalf("%s %s: %v", method, in, err)
		}
	}
	must(c.out.WriteMessageBegin(ctx, method, wire.CALL, 1))
	must(writeObject(ctx, c.out, withPrograms(c.t, decode(c.t, in)).(object)))
	must(c.out.WriteMessageEnd(ctx))
	must(c.out.Flush(ctx))
	_, typ, _, err := c.in.ReadMessageBegin(ctx)
	must(err)
	reply, err = readObject(ctx, c.in)
	must(err)
	must(c.in.ReadMessageEnd(ctx))
	return typ, reply
}

// TestLoadNoProgram: JSON that is no program is refused with the reason, and
// nothing waits for a swap.
func TestLoadNoProgram(t *testing.T) {
	c := newCaller(t, serveProgram(t, true))
	typ, reply := c.exchange("standard:bm_load_new_config", json.RawMessage(`{"1:bytes":"{\"program\": 1}"}`))
	if text := fmt.Sprint(reply["1:bytes"]); typ != wire.EXCEPTION || !strings.HasPrefix(text, "loading the program: ") || !strings.HasSuffix(text, "want the BMv2 JSON of a program") {
		t.Errorf("message type %d: %v", typ, reply)
	}
	if got := fmt.Sprint(c.call("standard:bm_swap_configs", json.RawMessage(`{}`))); got != "map[1:struct:map[1:i32:3]]" {
		t.Errorf("swapping: %s, want NO_ONGOING_SWAP", got)
	}
}

// withPrograms replaces {"program": FILE} by the BMv2 JSON of the program.
func withPrograms(t testing.TB, v any) any {
	o, ok := v.(object)
	if !ok {
		return v
	}
	if file, ok := o["program"].(string); ok {
		return object{"hex": hex.EncodeToString(compiled(t, file).JSON())}
	}
	out := object{}
	for k, x := range o {
		out[k] = withPrograms(t, x)
	}
	return out
}

// An object is a struct by "ID:TYPE". Its values are decoded JSON.
type object = map[string]any

func decode(t testing.TB, text json.RawMessage) object {
	t.Helper()
	var o object
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

var wireTypes = map[string]wire.TType{
	"bool": wire.BOOL, "i8": wire.BYTE, "i16": wire.I16, "i32": wire.I32, "i64": wire.I64,
	"double": wire.DOUBLE, "bytes": wire.STRING, "struct": wire.STRUCT, "map": wire.MAP,
}

func nameOf(typ wire.TType) string {
	for name, t := range wireTypes {
		if t == typ {
			return name
		}
	}
	return fmt.Sprintf("type%d", typ)
}

func writeObject(ctx context.Context, out wire.TProtocol, o object) error {
	if err := out.WriteStructBegin(ctx, ""); err != nil {
		return err
	}
	for key, v := range o {
		id, typ, _ := strings.Cut(key, ":")
		n, err := strconv.ParseInt(id, 10, 16)
		if err != nil {
			return err
		}
		element, list := strings.CutPrefix(strings.TrimSuffix(typ, ">"), "list<")
		t := wireTypes[typ]
		if list {
			t = wire.LIST
		}
		if err := out.WriteFieldBegin(ctx, "", t, int16(n)); err != nil {
			return err
		}
		if list {
			items := v.([]any)
			err = out.WriteListBegin(ctx, wireTypes[element], len(items))
			for _, x := range items {
				if err == nil {
					err = writeAny(ctx, out, element, x)
				}
			}
		} else {
			err = writeAny(ctx, out, typ, v)
		}
		if err != nil {
			return err
		}
	}
	return out.WriteFieldStop(ctx)
}

func writeAny(ctx context.Context, out wire.TProtocol, typ string, v any) error {
	number := func() int64 { n, _ := v.(json.Number).Int64(); return n }
	switch typ {
	case "bool":
		return out.WriteBool(ctx, v.(bool))
	case "i16":
		return out.WriteI16(ctx, int16(number()))
	case "i32":
		return out.WriteI32(ctx, int32(number()))
	case "i64":
		return out.WriteI64(ctx, number())
	case "double":
		f, _ := v.(json.Number).Float64()
		return out.WriteDouble(ctx, f)
	case "bytes":
		if h, ok := v.(object); ok {
			b, err := hex.DecodeString(h["hex"].(string))
			if err != nil {
				return err
			}
			return out.WriteBinary(ctx, b)
		}
		return out.WriteString(ctx, v.(string))
	case "struct":
		return writeObject(ctx, out, v.(object))
	}
	return fmt.Errorf("no such type: %s", typ)
}

func readObject(ctx context.Context, in wire.TProtocol) (object, error) {
	o := object{}
	for {
		_, typ, id, err := in.ReadFieldBegin(ctx)
		if err != nil || typ == wire.STOP {
			return o, err
		}
		name := nameOf(typ)
		var v any
		switch typ {
		case wire.LIST:
			element, n, err := in.ReadListBegin(ctx)
			if err != nil {
				return nil, err
			}
			name = "list<" + nameOf(element) + ">"
			list := make([]any, n)
			for i := range list {
				if list[i], err = readAny(ctx, in, element); err != nil {
					return nil, err
				}
			}
			v = list
		default:
			if v, err = readAny(ctx, in, typ); err != nil {
				return nil, err
			}
		}
		o[fmt.Sprintf("%d:%s", id, name)] = v
	}
}

func readAny(ctx context.Context, in wire.TProtocol, typ wire.TType) (any, error) {
	number := func(n int64, err error) (any, error) { return json.Number(strconv.FormatInt(n, 10)), err }
	switch typ {
	case wire.BOOL:
		return in.ReadBool(ctx)
	case wire.I32:
		n, err := in.ReadI32(ctx)
		return number(int64(n), err)
	case wire.I64:
		return number(in.ReadI64(ctx))
	case wire.DOUBLE:
		f, err := in.ReadDouble(ctx)
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), err
	case wire.STRING:
		b, err := in.ReadBinary(ctx)
		if slices.ContainsFunc(b, func(c byte) bool { return c < 32 || c > 126 }) {
			return object{"hex": hex.EncodeToString(b)}, err
		}
		return string(b), err
	case wire.STRUCT:
		return readObject(ctx, in)
	}
	return nil, fmt.Errorf("values of type %d are not expected", typ)
}

// settled normalizes values without a defined order, and removes values that
// change over time: it sorts the lists in the replication engine's JSON and
// omits the time since an entry was hit.
func settled(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case object:
		if life, ok := v["5:struct"].(object); ok && v["3:i32"] != nil {
			delete(life, "2:i32")
		}
		if h, ok := v["hex"].(string); ok {
			text, err := hex.DecodeString(h)
			if err != nil {
				t.Fatal(err)
			}
			if head := len(stateVersion) + 1; strings.HasPrefix(string(text), stateVersion+"\n") {
				return string(text[head+16:]) // without the digest of the program
			}
			var entries any
			if len(text) > 0 && text[0] == '{' && json.Unmarshal(text, &entries) == nil {
				return sorted(entries)
			}
		}
		out := object{}
		for k, x := range v {
			out[k] = settled(t, x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = settled(t, x)
		}
		return out
	}
	return v
}

func sorted(v any) any {
	switch v := v.(type) {
	case object:
		for k, x := range v {
			v[k] = sorted(x)
		}
	case []any:
		for i, x := range v {
			v[i] = sorted(x)
		}
		if len(v) > 0 {
			if _, ok := v[0].(object); ok {
				slices.SortFunc(v, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	}
	return v
}

// TestOwnAnswers contains the calls with replies that deliberately differ from
// simple_switch, with the reasons.
func TestOwnAnswers(t *testing.T) {
	const add, exact = "standard:bm_mt_add_entry", `{"1:i32":0,"2:bytes":"SessionIngress.exact_one","3:list<struct>":[` +
		`{"1:i32":0,"2:struct":{"1:bytes":{"hex":"000000000001"}}},{"1:i32":0,"2:struct":{"1:bytes":{"hex":"%s"}}}],` +
		`"4:bytes":"SessionIngress.to","5:list<bytes>":[{"hex":"%s"}],"6:struct":{}}`
	const rates = `{"1:i32":0,"2:bytes":"SessionIngress.limits","3:i32":0,"4:list<struct>":[{"1:double":%s,"2:i32":5},{"1:double":0.5,"2:i32":9}]}`
	const indirect = `{"1:i32":0,"2:bytes":"SessionIngress.profile_one","3:list<struct>":[{"1:i32":0,"2:struct":{"1:bytes":{"hex":"0800"}}}],"4:i32":0,"5:struct":{}}`
	const member = `{"1:i32":0,"2:bytes":"SessionIngress.shared","3:%s":%s}`
	c := newCaller(t, serveProgram(t, false))
	for _, x := range []struct{ why, call, in, want string }{
		{"a number of 10 bits for a key of 9: simple_switch cuts it", add, fmt.Sprintf(exact, "0203", "05"), `map[1:struct:map[1:i32:18]]`},
		{"a number of 10 bits for a parameter of 9: simple_switch keeps it", add, fmt.Sprintf(exact, "0003", "0400"), `map[1:struct:map[1:i32:26]]`},
		{"rates in order", "standard:bm_meter_set_rates", fmt.Sprintf(rates, "0.25"), `map[]`},
		{"rates out of order", "standard:bm_meter_set_rates", fmt.Sprintf(rates, "0.75"), `map[1:struct:map[1:i32:4]]`},
		{"refused rates change nothing: simple_switch sets the first", "standard:bm_meter_get_rates",
			`{"1:i32":0,"2:bytes":"SessionIngress.limits","3:i32":0}`, `map[0:list<struct>:[map[1:double:0.25 2:i32:5] map[1:double:0.5 2:i32:9]]]`},
		{"a member", "standard:bm_mt_act_prof_add_member", fmt.Sprintf(member, "bytes", `"SessionIngress.to","4:list<bytes>":["\u0005"]`), `map[0:i32:0]`},
		{"an entry that refers to it", "standard:bm_mt_indirect_add_entry", indirect, `map[0:i32:0]`},
		{"the same again", "standard:bm_mt_indirect_add_entry", indirect, `map[1:struct:map[1:i32:17]]`},
		{"the entry goes", "standard:bm_mt_indirect_delete_entry", `{"1:i32":0,"2:bytes":"SessionIngress.profile_one","3:i32":0}`, `map[]`},
		{"a refused entry refers to nothing: in simple_switch the member can never go", "standard:bm_mt_act_prof_delete_member", fmt.Sprintf(member, "i32", "0"), `map[]`},
		{"a session of 16 bits: there is room for 15 in a clone's number", "simple_switch:mirroring_session_add", `{"1:i32":40000,"2:struct":{"1:i32":1}}`, `map[1:struct:map[1:i32:1]]`},
		{"constant entries stay: simple_switch removes them", "standard:bm_mt_clear_entries", `{"1:i32":0,"2:bytes":"SessionIngress.fixed_one","3:bool":false}`, `map[1:struct:map[1:i32:25]]`},
		{"and when all is reset", "standard:bm_reset_state", `{}`, `map[]`},
		{"they are there", "standard:bm_mt_get_num_entries", `{"1:i32":0,"2:bytes":"SessionIngress.fixed_one"}`, `map[0:i64:2]`},
		{"a hash that there is not has a code: simple_switch says unordered_map::at", "standard:bm_set_toeplitz_hash_key", `{"1:i32":0,"2:bytes":"nothing","3:bytes":"1234"}`, `map[1:struct:map[1:i32:1]]`},
		{"digests go to P4Runtime's clients: there is no timeout to set here", "standard:bm_learning_set_timeout", `{"1:i32":0,"2:i32":1,"3:i32":100}`, `map[1:struct:map[1:i32:3]]`},
	} {
		if got := fmt.Sprint(c.call(x.call, json.RawMessage(x.in))); got != x.want {
			t.Errorf("%s: %s answers %s, want %s", x.why, x.call, got, x.want)
		}
	}
}
