package thrift

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	wire "github.com/apache/thrift/lib/go/thrift"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
)

// A Client is a connection to the Thrift server of a switch: BMv2 or the
// embedded switch. It is safe for concurrent use; calls are executed one after
// the other.
type Client struct {
	mu      sync.Mutex
	conn    *answerConn
	in, out wire.TProtocol
	seq     int32
	broken  error // the error after which the connection cannot be used
}

// An Error is an exception returned by the switch.
type Error struct {
	Call string
	Code int32
	Msg  string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Call, e.Msg) }

// maxReply is the maximum size of a reply: a register of eight million cells.
const maxReply = 64 << 20

const clientBuffer = 1 << 16

// An answerConn bounds the size of a complete reply; the protocol bounds only
// its parts.
type answerConn struct {
	net.Conn
	came int // bytes received since the last reply
}

func (c *answerConn) Read(b []byte) (int, error) {
	if c.came > maxReply+clientBuffer { // a part may belong to the next reply
		return 0, fmt.Errorf("the reply is larger than %d bytes", maxReply)
	}
	n, err := c.Conn.Read(b)
	c.came += n
	return n, err
}

// Dial connects to a switch at an address like "127.0.0.1:9090".
func Dial(ctx context.Context, addr string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to the Thrift server: %w", err)
	}
	conf := &wire.TConfiguration{MaxMessageSize: maxReply}
	bounded := &answerConn{Conn: conn}
	socket := wire.NewTSocketFromConnConf(bounded, conf)
	return &Client{
		conn: bounded,
		in:   wire.NewTBinaryProtocolConf(wire.NewTBufferedTransport(socket, clientBuffer), conf),
		out:  wire.NewTBinaryProtocolConf(wire.NewTBufferedTransport(socket, 1<<12), conf),
	}, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// do makes a call without return value. If ctx ends first, the connection
// becomes unusable.
func (c *Client) do(ctx context.Context, service, method string, args fields) error {
	replies, err := c.calls(ctx, service, method, []fields{args})
	if err != nil {
		return err
	}
	_, err = result0(method, replies[0])
	return err
}

// ask is like do for a call that returns a T.
func ask[T any](ctx context.Context, c *Client, service, method string, args fields) (none T, err error) {
	replies, err := c.calls(ctx, service, method, []fields{args})
	if err != nil {
		return none, err
	}
	return resultOf[T](method, replies[0])
}

// calls pipelines several calls of a method: the switch answers them in order,
// without a round trip per call.
func (c *Client) calls(ctx context.Context, service, method string, args []fields) ([]record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, c.broken
	}
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	replies, err := c.exchange(ctx, service+":"+method, args)
	if !stop() && err == nil {
		err = ctx.Err() // the connection is closed even if the reply arrived
	}
	refused, ok := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return replies, nil
	case ok && len(args) == 1:
		return nil, refused
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	c.broken = fmt.Errorf("%s: %w", method, err)
	c.conn.Close()
	return nil, c.broken
}

// exchange sends the calls and reads the replies.
func (c *Client) exchange(ctx context.Context, name string, args []fields) ([]record, error) {
	first := c.seq + 1
	for _, a := range args {
		c.seq++
		if err := c.out.WriteMessageBegin(ctx, name, wire.CALL, c.seq); err != nil {
			return nil, err
		}
		if err := writeFields(ctx, c.out, "args", a); err != nil {
			return nil, err
		}
		if err := c.out.WriteMessageEnd(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.out.Flush(ctx); err != nil {
		return nil, err
	}
	replies := make([]record, len(args))
	for i := range replies {
		var err error
		if replies[i], err = c.reply(ctx, name, first+int32(i)); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// reply reads the reply to a call.
func (c *Client) reply(ctx context.Context, name string, call int32) (record, error) {
	c.conn.came = 0
	_, typ, seq, err := c.in.ReadMessageBegin(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := (&reader{in: c.in, left: answerValues}).record(ctx, maxDepth)
	if err != nil {
		return nil, err
	}
	if err := c.in.ReadMessageEnd(ctx); err != nil {
		return nil, err
	}
	switch {
	case seq != call:
		return nil, fmt.Errorf("the reply belongs to call %d, not %d", seq, call)
	case typ == wire.EXCEPTION:
		return nil, &Error{Call: name, Code: reply.int32At(2), Msg: "rejected by the switch: " + reply.textAt(1)}
	case typ != wire.REPLY:
		return nil, fmt.Errorf("the message has type %d, want a reply", typ)
	}
	return reply, nil
}

// result0 returns the value or the declared exception in a reply.
func result0(method string, reply record) (any, error) {
	if e, ok := reply[1].(record); ok {
		code := e.int32At(1)
		return nil, &Error{Call: method, Code: code, Msg: meaning(method, code)}
	}
	return reply[0], nil
}

// meaning returns the meaning of an exception's code.
func meaning(method string, code int32) string {
	names := map[int32]string{1: "no such name", 2: "no such index", 3: "internal error of the switch"}
	if method == "mirroring_session_get" || method == "mirroring_session_delete" || method == "mirroring_session_add" {
		names = map[int32]string{1: "no such mirroring session"}
	}
	if s := names[code]; s != "" {
		return s
	}
	return fmt.Sprintf("error code %d", code)
}

// resultOf checks the type of a result.
func resultOf[T any](method string, reply record) (T, error) {
	v, err := result0(method, reply)
	x, ok := v.(T)
	if err == nil && !ok {
		err = fmt.Errorf("%s: the result in the reply has another type than the method returns", method)
	}
	return x, err
}

// named returns arguments that begin with context 0, the only one, and a name.
func named(name string, rest ...field) fields {
	return append(fields{{1, int32(0)}, {2, name}}, rest...)
}

// RegisterReadRange returns the cells from ≤ i < to, read one by one in
// pipelined calls, so not all at one moment. Use it for a few cells of a large
// register.
func (c *Client) RegisterReadRange(ctx context.Context, name string, from, to int) ([]uint64, error) {
	if from >= to {
		return nil, nil
	}
	args := make([]fields, 0, to-from)
	for i := from; i < to; i++ {
		args = append(args, named(name, field{3, int32(i)}))
	}
	replies, err := c.calls(ctx, "standard", "bm_register_read", args)
	if err != nil {
		return nil, err
	}
	cells := make([]uint64, len(replies))
	for i, r := range replies {
		x, err := resultOf[int64]("bm_register_read", r)
		if err != nil {
			return nil, err
		}
		cells[i] = uint64(x)
	}
	return cells, nil
}

// RegisterReadAll returns all cells, read at one moment.
func (c *Client) RegisterReadAll(ctx context.Context, name string) ([]uint64, error) {
	return ask[[]uint64](ctx, c, "standard", "bm_register_read_all", named(name))
}

// RegisterWriteRange sets the cells from ≤ i < to.
func (c *Client) RegisterWriteRange(ctx context.Context, name string, from, to int, value uint64) error {
	return c.do(ctx, "standard", "bm_register_write_range",
		named(name, field{3, int32(from)}, field{4, int32(to)}, field{5, int64(value)}))
}

// CounterWrite sets a cell of a counter.
func (c *Client) CounterWrite(ctx context.Context, name string, index int, packets, bytes uint64) error {
	value := fields{{1, int64(bytes)}, {2, int64(packets)}}
	return c.do(ctx, "standard", "bm_counter_write", named(name, field{3, int32(index)}, field{4, value}))
}

// Info returns the id of the switch and the port of its Thrift server.
func (c *Client) Info(ctx context.Context) (device uint64, port int, err error) {
	r, err := ask[record](ctx, c, "standard", "bm_mgmt_get_info", nil)
	return uint64(r.int64At(1)), int(r.int32At(2)), err
}

// Elapsed returns the clock used for timestamps in the data plane.
func (c *Client) Elapsed(ctx context.Context) (time.Duration, error) {
	x, err := ask[int64](ctx, c, "simple_switch", "get_time_elapsed_us", nil)
	return time.Duration(x) * time.Microsecond, err
}

// PortCounts returns the packets received, sent and dropped by each port. BMv2
// has no such call and returns an Error.
func (c *Client) PortCounts(ctx context.Context) ([]bmv2.PortCounts, error) {
	numbers, err := ask[[]uint64](ctx, c, ownService, "port_counts", nil)
	if err != nil {
		return nil, err
	}
	list, ok := bmv2.DecodePorts(numbers)
	if !ok {
		return nil, fmt.Errorf("port_counts: cannot decode the reply of %d numbers", len(numbers))
	}
	return list, nil
}

// status makes a call that returns 0 for success.
func (c *Client) status(ctx context.Context, method string, args fields) error {
	code, err := ask[int32](ctx, c, "simple_switch", method, args)
	if err == nil && code != resultOK {
		err = &Error{Call: method, Code: code, Msg: "rejected by the switch"}
	}
	return err
}

// SetQueueDepth sets the capacity in packets of the queue of a port with a
// priority, or of all queues of the port if priority is -1.
func (c *Client) SetQueueDepth(ctx context.Context, port, priority, packets int) error {
	if priority < 0 {
		return c.status(ctx, "set_egress_queue_depth", fields{{1, int32(port)}, {2, int32(packets)}})
	}
	return c.status(ctx, "set_egress_priority_queue_depth", fields{{1, int32(port)}, {2, int32(priority)}, {3, int32(packets)}})
}

// SetAllQueueDepths sets the capacity of all queues in packets.
func (c *Client) SetAllQueueDepths(ctx context.Context, packets int) error {
	return c.status(ctx, "set_all_egress_queue_depths", fields{{1, int32(packets)}})
}

// SetQueueRate sets the rate in packets per second of the queue of a port with
// a priority, or of all queues of the port if priority is -1. 0 stands for no
// limit.
func (c *Client) SetQueueRate(ctx context.Context, port, priority int, pps uint64) error {
	if priority < 0 {
		return c.status(ctx, "set_egress_queue_rate", fields{{1, int32(port)}, {2, int64(pps)}})
	}
	return c.status(ctx, "set_egress_priority_queue_rate", fields{{1, int32(port)}, {2, int32(priority)}, {3, int64(pps)}})
}

// SetAllQueueRates sets the rate of all queues in packets per second.
func (c *Client) SetAllQueueRates(ctx context.Context, pps uint64) error {
	return c.status(ctx, "set_all_egress_queue_rates", fields{{1, int64(pps)}})
}

// SetSession sends the clones of a session to a port or to a multicast group;
// -1 stands for none.
func (c *Client) SetSession(ctx context.Context, id, port, group int) error {
	args := fields{{1, int32(id)}, {2, sessionFields(port, group)}}
	return c.do(ctx, "simple_switch", "mirroring_session_add", args)
}

// DeleteSession removes a mirroring session.
func (c *Client) DeleteSession(ctx context.Context, id int) error {
	return c.do(ctx, "simple_switch", "mirroring_session_delete", fields{{1, int32(id)}})
}

// Session returns the port and the multicast group of a mirroring session; -1
// stands for none.
func (c *Client) Session(ctx context.Context, id int) (port, group int, err error) {
	r, err := ask[record](ctx, c, "simple_switch", "mirroring_session_get", fields{{1, int32(id)}})
	if err != nil {
		return 0, 0, err
	}
	port, group = r.session()
	return port, group, nil
}

// SetMeter sets the rates of a cell of a meter, or of all cells if index is -1.
func (c *Client) SetMeter(ctx context.Context, name string, index int, rates []dataplane.MeterRate) error {
	method, args := "bm_meter_array_set_rates", named(name, field{3, wireRates(rates)})
	if index >= 0 {
		method, args = "bm_meter_set_rates", named(name, field{3, int32(index)}, field{4, wireRates(rates)})
	}
	return c.do(ctx, "standard", method, args)
}

// SetCRC sets the parameters of a custom CRC of 16 or 32 bits.
func (c *Client) SetCRC(ctx context.Context, calculation string, p hash.CRC) error {
	method, number := "bm_set_crc16_custom_parameters", func(v uint64) any { return int16(v) }
	if p.Width == 32 {
		method, number = "bm_set_crc32_custom_parameters", func(v uint64) any { return int32(v) }
	}
	return c.do(ctx, "standard", method, named(calculation, field{3, fields{
		{1, number(p.Poly)}, {2, number(p.Init)}, {3, number(p.XorOut)}, {4, p.ReflectIn}, {5, p.ReflectOut},
	}}))
}

// AddValue adds a member to a parser's value set.
func (c *Client) AddValue(ctx context.Context, set string, value []byte) error {
	return c.do(ctx, "standard", "bm_parse_vset_add", named(set, field{3, value}))
}
