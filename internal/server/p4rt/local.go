package p4rt

import (
	"context"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// A Local is a server as its own process has it: messages come and go as they
// are, neither encoded nor decoded, and are those that the server keeps. So
// nobody may change them, and many servers may share one.
type Local struct {
	s    *Server
	keys *Keys
}

// Local is the server for its own process. Servers that are told the same things
// may share keys, nil for none.
func (s *Server) Local(keys *Keys) Local { return Local{s, keys} }

// Write applies a batch of updates, as Server.Write.
func (l Local) Write(req *p4v1.WriteRequest) error {
	if err := l.ended(); err != nil {
		return err
	}
	return l.s.write(context.Background(), req, 0, l.keys)
}

// ended is an error once the server has been stopped, as a connection would be.
func (l Local) ended() error {
	select {
	case <-l.s.stop:
		return errStopping
	default:
		return nil
	}
}

// Entities returns the entities that Read would send over the network.
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
