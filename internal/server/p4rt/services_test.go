package p4rt

import (
	"slices"
	"testing"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// TestHealth: the health service reports the server and the P4Runtime service
// as serving, rejects unknown services, and notifies watchers when the server
// stops.
func TestHealth(t *testing.T) {
	r := newRig(t, Options{})
	c := healthv1.NewHealthClient(r.conn)
	for _, service := range []string{"", "p4.v1.P4Runtime"} {
		a, err := c.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if err != nil || a.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("service %q: %v, %v", service, a, err)
		}
	}
	if _, err := c.Check(t.Context(), &healthv1.HealthCheckRequest{Service: "nothing"}); err == nil {
		t.Error("a service that is not there is healthy")
	}
	w, err := c.Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthv1.HealthCheckResponse_ServingStatus{healthv1.HealthCheckResponse_SERVING, healthv1.HealthCheckResponse_NOT_SERVING} {
		if a, err := w.Recv(); err != nil || a.GetStatus() != want {
			t.Fatalf("watching: %v, %v, want %v", a, err, want)
		}
		r.server.health.Shutdown()
	}
}

// TestReflection: a generic client finds the P4Runtime service and its
// description.
func TestReflection(t *testing.T) {
	r := newRig(t, Options{})
	s, err := reflectionv1.NewServerReflectionClient(r.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(q *reflectionv1.ServerReflectionRequest) *reflectionv1.ServerReflectionResponse {
		t.Helper()
		if err := s.Send(q); err != nil {
			t.Fatal(err)
		}
		a, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	var services []string
	for _, x := range ask(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}).GetListServicesResponse().GetService() {
		services = append(services, x.GetName())
	}
	for _, want := range []string{"p4.v1.P4Runtime", "grpc.health.v1.Health"} {
		if !slices.Contains(services, want) {
			t.Errorf("the services are %v, without %s", services, want)
		}
	}
	files := ask(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{
		FileContainingSymbol: "p4.v1.P4Runtime",
	}}).GetFileDescriptorResponse().GetFileDescriptorProto()
	for _, text := range files {
		var f descriptorpb.FileDescriptorProto
		if err := proto.Unmarshal(text, &f); err != nil {
			t.Fatal(err)
		}
		for _, x := range f.GetService() {
			if x.GetName() == "P4Runtime" && len(x.GetMethod()) == 6 {
				return
			}
		}
	}
	t.Errorf("no file of %d describes P4Runtime", len(files))
}
