package p4rt

import (
	"context"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// A Local gives programs in the same process access to a server. Messages are
// neither encoded nor copied, and the server keeps references to them. Callers
// must not change them afterwards; several servers may share one message.
type Local struct {
	s    *Server
	keys *Keys
}

// Local returns the server for use in its own process. Servers that receive the
// same messages may share keys; nil disables the cache.
func (s *Server) Local(keys *Keys) Local { return Local{s, keys} }

// Write applies a batch of updates like Server.Write.
func (l Local) Write(req *p4v1.WriteRequest) error {
	if err := l.ended(); err != nil {
		return err
	}
	return l.s.write(context.Background(), req, 0, l.keys)
}

// ended returns an error after the server has been stopped, like a connection
// would.
func (l Local) ended() error {
	select {
	case <-l.s.stop:
		return errStopping
	default:
		return nil
	}
}

// Entities returns the entities that Read would send.
func (l Local) Entities(req *p4v1.ReadRequest) ([]*p4v1.Entity, error) {
	if err := l.ended(); err != nil {
		return nil, err
	}
	sc, err := l.s.arb.readScope(req.GetDeviceId(), req.GetRole())
	if err != nil {
		return nil, err
	}
	var todo plan
	defer todo.close()
	results := make([]error, len(req.GetEntities()))
	if err := l.s.plan(sc, req.GetEntities(), &todo, results); err != nil {
		return nil, err
	}
	list, err := todo.list()
	if err != nil {
		return nil, err
	}
	return list, batchError("requests", results)
}
