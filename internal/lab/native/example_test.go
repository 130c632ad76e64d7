package native_test

import (
	"fmt"
	"log"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/lab/native"
)

// A manifest describes a program well enough for a model to replace it.
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
