package lower_test

import (
	"fmt"
	"log"
	"os"

	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/p4/lower"
)

// A program that is checked becomes the document that switches load.
func ExampleLower() {
	p, err := p4.Check(os.DirFS("../../../examples"), "router.p4", p4.Options{})
	if err != nil {
		log.Fatal(err)
	}
	config, errs := lower.Lower(p.File, p.Info, lower.Options{Program: "router.p4", Arch: p.Arch})
	if err := errs.Err(); err != nil {
		log.Fatal(err)
	}
	for _, pipe := range config.Pipelines {
		for _, t := range pipe.Tables {
			if len(t.Key) > 0 {
				fmt.Println(pipe.Name, t.Name, t.MatchType, t.Key[0].Name)
			}
		}
	}
	// Output:
	// ingress RouterIngress.next_hops exact meta.next_hop
	// ingress RouterIngress.routes lpm hdr.ipv4.dst
}
