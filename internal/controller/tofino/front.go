package tofino

import (
	"context"
	"crypto/tls"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// FrontPanel reads the names of a switch's ports. The switch must run a program. Without
// config, the connection is not encrypted.
func FrontPanel(ctx context.Context, address string, config *tls.Config) (fabric.Front, error) {
	with := insecure.NewCredentials()
	if config != nil {
		with = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(with))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	s := open(conn, func() *place { return &place{} }).Client.(*session)
	front, err := s.names(ctx)
	switch {
	case err != nil:
		return nil, errors.New(status.Convert(err).Message())
	case len(front) == 0:
		return nil, errors.New("the switch lists no ports")
	}
	return front, nil
}

// names returns the names of the switch's ports. It reads them once.
func (s *session) names(ctx context.Context) (fabric.Front, error) {
	s.mu.Lock()
	front := s.front
	s.mu.Unlock()
	if front != nil {
		return front, nil
	}
	t, err := s.chipNamed(ctx, "$PORT_STR_INFO")
	if err != nil {
		return nil, err
	}
	e, err := t.entry(nil, "")
	if err != nil {
		return nil, err
	}
	e.TableFlags = &wire.TableFlags{}
	front = fabric.Front{}
	err = s.read(ctx, s.place().everywhere(), []*wire.TableEntry{e}, func(e *wire.TableEntry) error {
		if f := e.GetKey().GetFields(); len(f) == 1 {
			front[string(f[0].GetExact().GetValue())] = int(t.row(e.GetData()).number("$DEV_PORT"))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.front = front
	return front, nil
}

// checkNames compares the names of ports in the topology with the names on the switch.
func (s *session) checkNames(ctx context.Context) error {
	want := s.place().front
	if len(want) == 0 {
		return nil
	}
	front, err := s.names(ctx)
	if err != nil {
		return err
	}
	for _, name := range want.Names() {
		switch have, ok := front[name]; {
		case !ok:
			return status.Errorf(codes.FailedPrecondition, "front-panel port %s: the switch has none of this name; p4lb topo ports prints its ports", name)
		case have != want[name]:
			return status.Errorf(codes.FailedPrecondition, "front-panel port %s is device port %d in the topology and %d on the switch; p4lb topo ports prints its ports", name, want[name], have)
		}
	}
	return nil
}
