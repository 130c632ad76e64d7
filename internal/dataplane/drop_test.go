package dataplane_test

import (
	"maps"
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// A copy that carries a message of the program to itself does not count as
// lost. A packet that the program drops after it has copied it does.
func TestEndOfCopies(t *testing.T) {
	type end struct {
		port uint32
		why  bmv2.DropReason
	}
	for _, c := range []struct {
		name, ingress, egress string
		sent                  int
		ends                  map[end]int
	}{
		{
			"a clone ends in egress",
			"clone(CloneType.I2E, 5); std.egress_spec = 3;", "if (std.instance_type == 1) { mark_to_drop(std); }",
			1, map[end]int{{1, bmv2.EndCopy}: 1},
		},
		{
			"a report comes round and ends in ingress",
			"if (std.instance_type == 4) { mark_to_drop(std); } else { std.egress_spec = 3; }",
			"if (std.instance_type == 0) { clone(CloneType.E2E, 5); } else { recirculate_preserving_field_list(0); }",
			1, map[end]int{{7, bmv2.EndCopy}: 1},
		},
		{
			"the packet itself, its clone goes on",
			"clone(CloneType.I2E, 5); mark_to_drop(std);", "",
			1, map[end]int{{7, bmv2.DropProgram}: 1},
		},
		{
			"the packet itself, after a round",
			"if (std.instance_type == 4) { mark_to_drop(std); } else { std.egress_spec = 3; }", "recirculate_preserving_field_list(0);",
			0, map[end]int{{7, bmv2.DropProgram}: 1},
		},
		{
			"the packet itself, in egress",
			"std.egress_spec = 3;", "mark_to_drop(std);",
			0, map[end]int{{3, bmv2.DropProgram}: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			ends := map[end]int{}
			sw, err := dataplane.New(looping(t, c.ingress, c.egress), dataplane.Options{Dropped: func(port uint32, why bmv2.DropReason) { ends[end{port, why}]++ }})
			if err != nil {
				t.Fatal(err)
			}
			if err := sw.Mirrors().Set(5, dataplane.MirrorSession{Port: 1, HasPort: true}); err != nil {
				t.Fatal(err)
			}
			if sent := len(dataplane.NewEngine(sw).Process(7, []byte{1, 2, 3}, 0)); sent != c.sent || !maps.Equal(ends, c.ends) {
				t.Errorf("%d packets were sent and %v ended, want %d and %v", sent, ends, c.sent, c.ends)
			}
		})
	}
}
