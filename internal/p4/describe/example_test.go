package describe_test

import (
	"fmt"
	"log"
	"os"

	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/p4/describe"
)

// P4Info needs a program that is checked, not one that is lowered.
func ExampleP4Info() {
	p, err := p4.Check(os.DirFS("../../../examples"), "router.p4", p4.Options{})
	if err != nil {
		log.Fatal(err)
	}
	info, errs := describe.P4Info(p.File, p.Info, p.Arch)
	if err := errs.Err(); err != nil {
		log.Fatal(err)
	}
	for _, t := range info.Tables {
		fmt.Println(t.Preamble.Name, t.MatchFields[0].Name, t.MatchFields[0].GetMatchType(), t.Size)
	}
	// Output:
	// RouterIngress.routes hdr.ipv4.dst LPM 4096
	// RouterIngress.next_hops meta.next_hop EXACT 256
}
