package p4rt

import (
	"slices"
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/dataplane"
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
	return l.s.write(req, 0, l.keys)
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

// Entities are those that Read would send.
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
	var out answer
	if err := todo.run(&out); err != nil {
		return nil, err
	}
	return out.kept, batchError("requests", results)
}

// Keys are those of entries whose messages servers of one process share: each is
// checked once for all of them. The zero value works; it keeps the messages.
type Keys struct {
	mu sync.RWMutex
	of map[**p4v1.FieldMatch]sharedKey // by where the list of matches is
}

// A sharedKey is a key with what it is that of.
type sharedKey struct {
	key
	fields   []fieldInfo
	kinds    []dataplane.MatchKind
	count    int
	priority int32
}

// key checks the fields that identify an entry, if that has not been done.
func (k *Keys) key(t *tableState, m *p4v1.TableEntry) (key, error) {
	list := m.GetMatch()
	if k == nil || len(list) == 0 {
		return t.key(m)
	}
	k.mu.RLock()
	have, ok := k.of[&list[0]]
	k.mu.RUnlock()
	if ok && have.count == len(list) && have.priority == m.GetPriority() && slices.Equal(have.fields, t.info.fields) && slices.Equal(have.kinds, t.kinds) {
		return have.key, nil
	}
	made, err := t.key(m)
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.of == nil {
			k.of = map[**p4v1.FieldMatch]sharedKey{}
		}
		k.of[&list[0]] = sharedKey{made, t.info.fields, t.kinds, len(list), m.GetPriority()}
	}
	return made, err
}
