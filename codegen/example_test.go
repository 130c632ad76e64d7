package codegen_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/p4lb/p4lb/codegen"
)

// A row of the catalogue, with a parameter of its own, becomes a program.
func ExampleGenerate() {
	row, err := codegen.Lookup("letflow")
	if err != nil {
		log.Fatal(err)
	}
	p, err := codegen.Generate(row, codegen.Params{Ports: 4, Set: map[string]string{"gap": "200us"}})
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(p.P4) {
		if strings.HasPrefix(line, "const time_us_t") {
			fmt.Print(line)
		}
	}
	// Output:
	// const time_us_t FLOWLET_GAP = 200;
}
