package p4_test

import (
	"fmt"
	"log"
	"os"
	"testing/fstest"

	"github.com/p4lb/p4lb/internal/p4"
)

// Compile makes the document that switches load and the P4Info of a program.
func ExampleCompile() {
	p, err := p4.Compile(os.DirFS("../../examples"), "router.p4", p4.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Arch, p.Main(), len(p.Config.Pipelines), "pipelines,", len(p.P4Info.Tables), "tables")
	// Output:
	// v1model V1Switch 2 pipelines, 2 tables
}

// An error has a position, and its message has the remedy.
func ExampleCheck() {
	file := fstest.MapFS{"h.p4": {Data: []byte("const bit<16> wide = 300;\nconst bit<8> narrow = wide;\n")}}
	_, err := p4.Check(file, "h.p4", p4.Options{})
	fmt.Println(err)
	// Output:
	// h.p4:2:23: wide has type bit<16>, but the constant narrow needs bit<8>; cast it: (bit<8>)
}
