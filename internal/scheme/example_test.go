package scheme_test

import (
	"fmt"
	"log"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme"
)

// A program comes with its manifest and its compiled form.
func ExampleOf() {
	row, err := codegen.Lookup("ecmp")
	if err != nil {
		log.Fatal(err)
	}
	p, err := scheme.Of(row).Build(codegen.Params{Ports: 4})
	if err != nil {
		log.Fatal(err)
	}
	files, err := scheme.Files(p)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		fmt.Println(f.Name)
	}
	// Output:
	// ecmp.p4
	// ecmp.json
	// ecmp.p4info.txtpb
	// ecmp.manifest.json
}
