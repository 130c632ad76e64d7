package bench

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// A rig is a switch with a server on loopback and a connection to it.
type rig struct {
	ctx    context.Context
	dev    *p4rt.Device
	sw     *dataplane.Switch // the one configured last
	server interface {
		Serve(net.Listener) error
		Stop(context.Context)
	}
	conn *grpc.ClientConn
}

// load creates the device.
func (r *rig) load() (err error) {
	r.dev, err = p4rt.NewDevice(p4rt.DeviceOptions{Load: func(program []byte, o dataplane.Options) (*dataplane.Switch, error) {
		config, err := bmv2.Load(program)
		if err != nil {
			return nil, err
		}
		r.sw, err = dataplane.New(config, o)
		return r.sw, err
	}})
	return err
}

// connect starts the server and the client's connection.
func (r *rig) connect(options ...grpc.DialOption) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go r.server.Serve(l) // the client would see an error too
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	r.conn, err = grpc.NewClient(l.Addr().String(), options...)
	return err
}

// close stops the server immediately.
func (r *rig) close() {
	if r.conn != nil {
		r.conn.Close()
	}
	if r.server != nil {
		at, cancel := context.WithCancel(context.Background())
		cancel()
		r.server.Stop(at)
	}
	if r.dev != nil {
		r.dev.Close() // has no ports that could fail
	}
}
