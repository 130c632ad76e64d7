package syntax_test

import (
	"fmt"
	"log"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// A program is parsed from a file system, here of one file, and printed again.
func ExampleParse() {
	text := []byte("const bit<8> TTL = 64; header h_t { bit<8> ttl; }")
	file, errs := syntax.Parse(syntax.OneFile("h.p4", text), "h.p4", syntax.Options{})
	if err := errs.Err(); err != nil {
		log.Fatal(err)
	}
	for _, d := range file.Decls {
		fmt.Println(d.DeclName().Value, d.Pos(), syntax.String(d))
	}
	// Output:
	// TTL h.p4:1:1 const bit<8> TTL = 64;
	// h_t h.p4:1:24 header h_t { bit<8> ttl; }
}
