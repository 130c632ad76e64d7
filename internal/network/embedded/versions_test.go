package embedded_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/embedded"
)

// TestBfRtVersions: the requests of deployments contain no field and no value that one of
// the SDE's published versions lacks. Only keys of kind optional, which no program of the
// catalogue has, require 9.9.
func TestBfRtVersions(t *testing.T) {
	text, err := os.ReadFile("../../../testdata/oracle/bfrt-protos.tsv")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string][]string{} // versions by name
	versions := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); line[0] != '#' {
			versions[f[0]] = true
			if len(f) == 4 {
				missing[f[3]] = append(missing[f[3]], f[0])
			}
		}
	}
	if want := "9.11.0 9.13 9.13.4 9.5 9.9.0"; strings.Join(slices.Sorted(maps.Keys(versions)), " ") != want {
		t.Errorf("versions %v, want %s", versions, want)
	}
	sent := &sentNames{names: map[string]bool{}}
	top := preset(t, "qall")
	to := newTarget(t, embedded.Options{Memory: true, Still: true, BfRt: true})
	for _, scheme := range []string{"conga@tna", "drill+rlb@tna"} {
		if _, err := controller.Deploy(testContext(t), bfrtPlan(t, scheme, top), &watched{to, sent}, controller.DeployOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	indirect := newTarget(t, embedded.Options{Memory: true, Still: true, BfRt: true})
	if _, err := controller.Deploy(testContext(t), indirectPlan(t, writtenFabric(t), true), &watched{indirect, sent}, controller.DeployOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"WriteRequest.p4_name", "TableEntry.table_flags", "TableFlags.from_hw", "KeyField.lpm", "Update.Type=MODIFY", "DataField.bool_arr_val"} {
		if !sent.names[want] {
			t.Errorf("no request has %s", want)
		}
	}
	for name := range sent.names {
		if v := missing[name]; v != nil {
			t.Errorf("a request has %s, which SDE %s lack", name, strings.Join(v, ", "))
		}
	}
}

// watched records what clients send.
type watched struct {
	*embedded.Target
	sent *sentNames
}

func (w *watched) Endpoint(name string) (target.Endpoint, error) {
	e, err := w.Target.Endpoint(name)
	speak := e.Speak
	e.Speak = func(conn grpc.ClientConnInterface) target.Session { return speak(&watchedConn{conn, w.sent}) }
	return e, err
}

type watchedConn struct {
	grpc.ClientConnInterface
	sent *sentNames
}

func (c *watchedConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	c.sent.add(args)
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

func (c *watchedConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	return &watchedStream{s, c.sent}, err
}

type watchedStream struct {
	grpc.ClientStream
	sent *sentNames
}

func (s *watchedStream) SendMsg(m any) error {
	s.sent.add(m)
	return s.ClientStream.SendMsg(m)
}

// sentNames collects the names of fields that are set, and of values of enumerations.
type sentNames struct {
	mu    sync.Mutex
	names map[string]bool
}

func (s *sentNames) add(m any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.walk(m.(proto.Message).ProtoReflect())
}

func (s *sentNames) walk(m protoreflect.Message) {
	local := func(name protoreflect.FullName) string { return strings.TrimPrefix(string(name), "bfrt_proto.") }
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		s.names[local(m.Descriptor().FullName())+"."+string(f.Name())] = true
		switch {
		case f.Kind() == protoreflect.EnumKind:
			if value := f.Enum().Values().ByNumber(v.Enum()); value != nil {
				s.names[local(f.Enum().FullName())+"="+string(value.Name())] = true
			}
		case f.Kind() == protoreflect.MessageKind && f.IsList():
			for i := range v.List().Len() {
				s.walk(v.List().Get(i).Message())
			}
		case f.Kind() == protoreflect.MessageKind:
			s.walk(v.Message())
		}
		return true
	})
}
