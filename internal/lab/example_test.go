package lab_test

import (
	"fmt"
	"log"

	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// An experiment consists of runs: a scheme at a load with a seed each.
func ExampleRunner_Jobs() {
	x, err := spec.Load("two.yaml", []byte("schemes: [letflow, ecmp]\nloads: [0.5]\nseeds: 2\n"), spec.NoFiles, nil)
	if err != nil {
		log.Fatal(err)
	}
	r := &lab.Runner{}
	jobs, err := r.Jobs(x)
	if err != nil {
		log.Fatal(err)
	}
	for _, j := range jobs {
		fmt.Println(j.Name())
	}
	// Output:
	// letflow/load-0.5/seed-1
	// letflow/load-0.5/seed-2
	// ecmp/load-0.5/seed-1
	// ecmp/load-0.5/seed-2
}
