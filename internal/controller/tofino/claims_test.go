package tofino

import (
	"errors"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// The names of front-panel ports in the topology must be the names on the switch, for the
// same device ports.
func TestNamesOfPorts(t *testing.T) {
	const see = "; p4lb topo ports prints its ports"
	have := fabric.Front{"1/0": 0, "1/1": 1, "2/0": 4}
	for _, test := range []struct {
		want fabric.Front
		err  string
	}{
		{nil, ""}, {fabric.Front{"1/0": 0}, ""}, {have, ""},
		{fabric.Front{"1/0": 0, "9/9": 1}, "front-panel port 9/9: the switch has none of this name" + see},
		{fabric.Front{"1/1": 5}, "front-panel port 1/1 is device port 5 in the topology and 1 on the switch" + see},
	} {
		s := &session{front: have, place: func() *place { return &place{front: test.want} }}
		err := s.checkNames(t.Context())
		if test.err == "" && err != nil || test.err != "" && (status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != test.err) {
			t.Errorf("%v: %v, want %q", test.want, err, test.err)
		}
	}
}

// Without a program to load, a controller can neither push one nor take a switch over from
// another client. The errors name the running program, and the flag for another one.
func TestWithoutProgram(t *testing.T) {
	s := &session{place: func() *place { return &place{} }, why: errors.New("it runs drill")}
	if _, err := s.SetForwardingPipelineConfig(t.Context(), &p4v1.SetForwardingPipelineConfigRequest{}); status.Code(err) != codes.FailedPrecondition ||
		status.Convert(err).Message() != "it runs drill; load the program there, or name the .conf of the compiler with --device-config" {
		t.Errorf("pushing: %v", err)
	}
	empty := []byte(`{"schema_version": "1.0.0", "tables": []}`)
	opened := open(&recorder{program: empty, chip: empty}, func() *place { return &place{} }).Client.(*session)
	if err := opened.takeOver(t.Context()); status.Code(err) != codes.FailedPrecondition || !strings.HasPrefix(status.Convert(err).Message(), "another client is bound to conga, and only a reload of the program ends that") {
		t.Errorf("taking over: %v", err)
	}
	if bound, err := opened.bind(t.Context()); !bound || err != nil {
		t.Errorf("binding: %v, %v", bound, err)
	}
	if bound, err := opened.bind(t.Context()); !bound || err != nil || opened.bound != "conga" {
		t.Errorf("binding twice: %v, %v, to %q", bound, err, opened.bound)
	}
	// A schema that cannot be read is lost data, of the program and of the chip.
	for _, r := range []*recorder{{program: []byte("{"), chip: empty}, {program: empty, chip: []byte("{")}} {
		if err := open(r, func() *place { return &place{} }).Client.(*session).look(t.Context()); status.Code(err) != codes.DataLoss {
			t.Errorf("a broken schema: %v", err)
		}
	}
}
