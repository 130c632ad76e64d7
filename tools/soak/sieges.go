package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// digestSiege is the name of the siege that needs its own packets.
const digestSiege = "digests without receiver"

// sieges returns the attacks of P4Runtime and Thrift clients.
func sieges() []siege {
	return []siege{
		{name: "readers that receive nothing", run: func(w *p4rtTarget) error {
			return w.crowd(100, 10, func(c p4v1.P4RuntimeClient, i int) error {
				_, err := c.Read(w, w.everything(i%2 == 0))
				<-w.Done()
				return err
			})
		}},
		{name: "readers that receive everything, endlessly", run: func(w *p4rtTarget) error { return w.readers(0) }},
		{name: "slow readers", run: func(w *p4rtTarget) error { return w.readers(50 * time.Millisecond) }},
		{name: digestSiege, run: func(w *p4rtTarget) error {
			digest := &p4v1.DigestEntry{DigestId: w.ids["digest"], Config: &p4v1.DigestEntry_Config{MaxListSize: 1}}
			if _, err := w.primary.Write(w, w.batch(&p4v1.Update{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{DigestEntry: digest}}})); err != nil && w.Err() == nil {
				return err
			}
			return w.crowd(4, 4, func(c p4v1.P4RuntimeClient, i int) error {
				stream, err := w.claim(w, c, fmt.Sprint("role", i), electionID)
				if err != nil {
					return err
				}
				payload := make([]byte, 8)
				for n := uint64(i) << 32; w.Err() == nil; n++ {
					binary.BigEndian.PutUint64(payload, n)
					if err := stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{
						Payload: payload, Metadata: []*p4v1.PacketMetadata{{MetadataId: 1, Value: []byte{1}}},
					}}}); err != nil {
						return ended(stream)
					}
				}
				return nil
			})
		}},
		{name: "role names of 2 MB", run: func(w *p4rtTarget) error {
			return w.crowd(50, 10, func(c p4v1.P4RuntimeClient, i int) error {
				for n := 0; w.Err() == nil; n++ {
					if _, err := w.claim(w, c, fmt.Sprint(i, " ", n, strings.Repeat("x", 2<<20)), electionID); status.Code(err) != codes.InvalidArgument && w.Err() == nil {
						return fmt.Errorf("the role was not rejected: %v", err)
					}
				}
				return nil
			})
		}},
		{name: "endless roles", run: func(w *p4rtTarget) error {
			return w.crowd(20, 10, func(c p4v1.P4RuntimeClient, i int) error {
				for n := 0; w.Err() == nil; n++ {
					ctx, cancel := context.WithCancel(w)
					w.claim(ctx, c, fmt.Sprint(i, " ", n, strings.Repeat("x", 900)), electionID)
					cancel()
				}
				return nil
			})
		}},
		{name: "batches that fail", run: func(w *p4rtTarget) error {
			return w.batches(100_000, codes.Unknown)
		}},
		{name: "oversized batches", run: func(w *p4rtTarget) error {
			return w.batches(300_000, codes.ResourceExhausted)
		}},
		{name: "halves of large messages", run: func(w *p4rtTarget) error {
			gone := &p4v1.Update{Type: p4v1.Update_DELETE, Entity: w.route(1 << 26)}
			gone.GetEntity().GetTableEntry().Metadata = make([]byte, 900_000)
			large := w.batch()
			for range 30 {
				large.Updates = append(large.Updates, gone)
			}
			return w.stuck(60, 20<<20, 1<<62, func(c p4v1.P4RuntimeClient) { c.Write(w, large) })
		}},
		{name: "stream errors without receiver", run: func(w *p4rtTarget) error {
			payload := make([]byte, 30_000)
			return w.crowd(200, 20, func(c p4v1.P4RuntimeClient, i int) error {
				stream, err := w.claim(w, c, fmt.Sprint("role", i), &p4v1.Uint128{Low: uint64(i + 1)})
				if err != nil {
					return err
				}
				for w.Err() == nil { // a packet without metadata
					if err := stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{Payload: payload}}}); err != nil {
						return ended(stream)
					}
				}
				return nil
			})
		}},
		{name: "messages in pieces of one byte", run: func(w *p4rtTarget) error { return w.pieces(20, "/p4.v1.P4Runtime/Write") }},
		{name: "a program that is requested but not received", run: func(w *p4rtTarget) error {
			return w.stuck(40, 1<<62, 10_000, func(c p4v1.P4RuntimeClient) {
				var all sync.WaitGroup
				for range 50 {
					all.Go(func() { c.GetForwardingPipelineConfig(w, &p4v1.GetForwardingPipelineConfigRequest{DeviceId: 1}) })
				}
				all.Wait()
			})
		}},
		{name: "streams", run: func(w *p4rtTarget) error {
			return w.crowd(2000, 10, func(c p4v1.P4RuntimeClient, i int) error {
				c.StreamChannel(w)
				<-w.Done()
				return nil
			})
		}},
		{name: "connections to P4Runtime", run: func(w *p4rtTarget) error { return connections(w, w.p4runtime, "") }},
		{name: "connections to Thrift", run: func(w *p4rtTarget) error { return connections(w, w.thrift, "") }},
		{name: "partial calls to Thrift", run: (*p4rtTarget).halfCalls},
		{name: "messages at one byte per second", run: func(w *p4rtTarget) error {
			return each(w, 200, w.p4runtime, func(conn net.Conn) error {
				go io.Copy(io.Discard, conn)
				call := append(frame(headersFrame, endHeaders, 1, head("/p4.v1.P4Runtime/Write")), frame(dataFrame, 0, 1, []byte{0, 2, 0, 0, 0})...)
				_, err := conn.Write(append([]byte(preface), append(frame(settingsFrame, 0, 0, nil), call...)...))
				for err == nil {
					select {
					case <-w.Done():
						return nil
					case <-time.After(time.Second):
						_, err = conn.Write(frame(dataFrame, 0, 1, []byte{0}))
					}
				}
				return err
			})
		}},
		// On a busy machine the calls of a thousand clients reach 260 MiB.
		{name: "calls canceled immediately", memory: 400, run: func(w *p4rtTarget) error {
			return w.crowd(100, 10, func(c p4v1.P4RuntimeClient, i int) error {
				for w.Err() == nil {
					ctx, cancel := context.WithCancel(w)
					if stream, err := c.Read(ctx, w.everything(i%2 == 0)); err == nil && i%4 == 0 {
						stream.Recv()
					}
					cancel()
				}
				return nil
			})
		}},
		{name: "the beginning of a 2 GiB message to Thrift", run: func(w *p4rtTarget) error { return connections(w, w.thrift, "\x7f\xff\xff\xff\x80\x01\x00\x01") }},
		{name: "incomplete TLS handshakes", tls: true, run: func(w *p4rtTarget) error { return connections(w, w.p4runtime, hello()) }},
		{name: "garbage to P4Runtime", run: func(w *p4rtTarget) error {
			return connections(w, w.p4runtime, preface+strings.Repeat("\xff", 1000))
		}},
	}
}

// ended returns the reason why the switch has ended a stream. Send only returns
// EOF, also when the time is over.
func ended(stream p4v1.P4Runtime_StreamChannelClient) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

// crowd runs n clients on the given number of connections until the time is
// over.
func (w *p4rtTarget) crowd(n, connections int, do func(c p4v1.P4RuntimeClient, i int) error) error {
	clients := make([]p4v1.P4RuntimeClient, connections)
	for i := range clients {
		var err error
		if clients[i], err = dial(w.p4runtime); err != nil {
			return err
		}
	}
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- do(clients[i%connections], i) }()
	}
	for range n {
		switch err := <-errs; status.Code(err) {
		case codes.OK, codes.DeadlineExceeded, codes.Canceled: // the time is over
		default:
			if w.Err() == nil {
				return err
			}
		}
	}
	return nil
}

func (w *p4rtTarget) everything(counters bool) *p4v1.ReadRequest {
	e := &p4v1.TableEntry{TableId: w.ids["routes"]}
	if counters {
		e.CounterData = &p4v1.CounterData{}
	}
	return &p4v1.ReadRequest{DeviceId: 1, Entities: []*p4v1.Entity{{Entity: &p4v1.Entity_TableEntry{TableEntry: e}}}}
}

// readers read everything repeatedly, with a pause between messages.
func (w *p4rtTarget) readers(pause time.Duration) error {
	return w.crowd(100, 10, func(c p4v1.P4RuntimeClient, i int) error {
		for w.Err() == nil {
			stream, err := c.Read(w, w.everything(i%2 == 0))
			if err != nil {
				return err
			}
			for {
				if _, err := stream.Recv(); err != nil {
					break
				}
				if pause > 0 {
					select {
					case <-time.After(pause):
					case <-w.Done():
					}
				}
			}
		}
		return nil
	})
}

// batches makes the primary write batches of deletions of missing entries.
func (w *p4rtTarget) batches(n int, want codes.Code) error {
	gone := &p4v1.Update{Type: p4v1.Update_DELETE, Entity: w.route(1 << 26)}
	list := make([]*p4v1.Update, n)
	for i := range list {
		list[i] = gone
	}
	for w.Err() == nil {
		if _, err := w.primary.Write(w, w.batch(list...)); status.Code(err) != want && w.Err() == nil {
			return fmt.Errorf("a batch of %d: %v, want %v", n, err, want)
		}
	}
	return nil
}

// stuck runs clients with connections that stop after the given numbers of
// bytes.
func (w *p4rtTarget) stuck(n, sent, received int, do func(p4v1.P4RuntimeClient)) error {
	var all sync.WaitGroup
	for range n {
		c, err := dial(w.p4runtime, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			return &stuckConn{conn, w, sent, received}, nil
		}))
		if err != nil {
			return err
		}
		all.Go(func() { do(c) })
	}
	all.Wait()
	return nil
}

type stuckConn struct {
	net.Conn
	over           context.Context
	sent, received int
}

func (c *stuckConn) Write(b []byte) (int, error) {
	if c.sent -= len(b); c.sent < 0 {
		<-c.over.Done()
		return 0, errors.New("stuck")
	}
	return c.Conn.Write(b)
}

func (c *stuckConn) Read(b []byte) (int, error) {
	if c.received < 0 {
		<-c.over.Done()
		return 0, errors.New("stuck")
	}
	n, err := c.Conn.Read(b)
	c.received -= n
	return n, err
}

// pieces opens connections with sixty calls each, as many as flow control
// permits, and sends an incomplete message for each call byte by byte.
func (w *p4rtTarget) pieces(n int, method string) error {
	return each(w, n, w.p4runtime, func(conn net.Conn) error {
		go io.Copy(io.Discard, conn)
		_, err := conn.Write(append([]byte(preface), frame(settingsFrame, 0, 0, nil)...))
		for stream := uint32(1); stream < 120 && err == nil; stream += 2 {
			call := append(frame(headersFrame, endHeaders, stream, head(method)), frame(dataFrame, 0, stream, []byte{0, 0, 0x10, 0, 0})...)
			call = append(call, bytes.Repeat(frame(dataFrame, 0, stream, []byte{0}), 60_000)...)
			_, err = conn.Write(call)
		}
		if err == nil {
			<-w.Done()
		}
		return err
	})
}

// connections keeps opening 2000 connections at a time and sends text on each.
func connections(over context.Context, address, text string) error {
	for over.Err() == nil {
		var list []net.Conn
		for range 2000 {
			c, err := net.DialTimeout("tcp", address, time.Second)
			if err != nil {
				break // the machine or the switch accepts no more
			}
			c.Write([]byte(text))
			list = append(list, c)
			if over.Err() != nil {
				break
			}
		}
		for _, c := range list {
			c.Close()
		}
	}
	return nil
}

// each runs n connections until the time is over, which closes them. A rejected
// connection is opened again.
func each(over context.Context, n int, address string, do func(net.Conn) error) error {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for over.Err() == nil {
				conn, err := net.DialTimeout("tcp", address, time.Second)
				if err != nil {
					continue
				}
				end := context.AfterFunc(over, func() { conn.Close() })
				do(conn)
				end()
				conn.Close()
			}
		})
	}
	all.Wait()
	return nil
}

// halfCalls begins calls on more connections than the server allows, while
// another client makes complete calls, which must be answered.
func (w *p4rtTarget) halfCalls() error {
	const name = "standard:bm_mgmt_get_info"
	call := "\x80\x01\x00\x01\x00\x00\x00" + string(rune(len(name))) + name + "\x00\x00\x00\x01\x00"
	done := make(chan error, 1)
	go func() {
		done <- each(w, 100, w.thrift, func(conn net.Conn) error {
			go io.Copy(io.Discard, conn)
			_, err := conn.Write([]byte(call[:20]))
			<-w.Done()
			return err
		})
	}()
	answers := 0
	for w.Err() == nil {
		conn, err := net.DialTimeout("tcp", w.thrift, time.Second)
		if err != nil {
			continue
		}
		conn.SetDeadline(time.Now().Add(time.Second))
		conn.Write([]byte(call))
		if n, _ := conn.Read(make([]byte, 100)); n > 0 {
			answers++
		}
		conn.Close()
	}
	<-done
	if answers == 0 {
		return errors.New("no complete Thrift call was answered")
	}
	return nil
}
