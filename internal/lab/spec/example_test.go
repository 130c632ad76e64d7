package spec_test

import (
	"fmt"
	"log"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// Load fills in values that the file omits.
func ExampleLoad() {
	x, err := spec.Load("drill.yaml", []byte(`
schemes: [drill, ecmp]
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2}}
loads: [0.7]
`), spec.NoFiles, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range x.Schemes {
		fmt.Println(s.Label, x.Engine, x.Seeds)
	}
	// Output:
	// drill p4 [1 2 3 4 5]
	// ecmp p4 [1 2 3 4 5]
}
