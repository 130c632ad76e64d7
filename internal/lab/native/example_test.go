package native_test

import (
	"fmt"
	"log"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/lab/native"
)

// A manifest says enough of a program for the oracle to take its place.
func ExampleModelOf() {
	row, err := codegen.Lookup("drill")
	if err != nil {
		log.Fatal(err)
	}
	p, err := codegen.Generate(row, codegen.Params{Ports: 8})
	if err != nil {
		log.Fatal(err)
	}
	m, err := native.ModelOf(&p.Manifest, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Granularity, m.Signal, m.Choice, m.Paths)
	// Output:
	// packet queue sampled 8
}
