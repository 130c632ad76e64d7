package p4rt

import (
	"log/slog"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
)

// FuzzUpdate applies an arbitrary update to a switch with one entity of each
// kind and undoes it. Nothing may panic, the data plane must accept everything the
// control plane has accepted, and both a rejected and an undone update must
// leave the state unchanged.
func FuzzUpdate(f *testing.F) {
	for _, typ := range []p4v1.Update_Type{ins, mod, del} {
		for _, u := range oneOfEach(f, typ) {
			b, err := proto.Marshal(u)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	config := testConfig(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var u p4v1.Update
		if proto.Unmarshal(data, &u) != nil {
			return
		}
		p := filled(t, config)
		before := p.all(t)
		j := &journal{}
		if err := p.update(j, nil, &u); err != nil {
			wantSame(t, before, p.all(t))
			if len(j.undo) > 0 {
				t.Error("a refused update is to be taken back")
			}
			return
		}
		p.all(t) // any accepted state can be read
		j.rollBack()
		wantSame(t, before, p.all(t))
	})
}

// FuzzP4Info parses an arbitrary P4Info: it must return an error or an index.
func FuzzP4Info(f *testing.F) {
	b, err := proto.Marshal(testConfig(f).GetP4Info())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		var p configv1.P4Info
		if proto.Unmarshal(data, &p) != nil {
			return
		}
		if in, err := newInfo(&p); (in == nil) != (err != nil) {
			t.Errorf("%v beside %v", in, err)
		}
	})
}

// filled returns a pipeline with one entity of each kind.
func filled(t *testing.T, config *p4v1.ForwardingPipelineConfig) *pipeline {
	t.Helper()
	dev, err := NewDevice(DeviceOptions{CPUPort: 255, Load: loadProgram})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	p, err := newPipeline(config, dev, slog.New(failOnError{t}), func(*p4v1.DigestList) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []p4v1.Update_Type{ins, mod} {
		for _, u := range oneOfEach(t, typ) {
			if err := p.update(nil, nil, u); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

// all reads all entities.
func (p *pipeline) all(t *testing.T) []*p4v1.Entity {
	t.Helper()
	var todo plan
	defer todo.close()
	requests := append(everything(), registerEntity(t, "AllIngress.sizes", -1, nil), registerEntity(t, "AllIngress.wide", -1, nil))
	for _, e := range requests {
		if err := p.read(nil, e, &todo); err != nil {
			t.Fatal(err)
		}
	}
	list, err := todo.list()
	if err != nil {
		t.Fatal(err)
	}
	return list
}
