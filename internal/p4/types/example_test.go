package types_test

import (
	"fmt"
	"log"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// The side tables hold the types and constants; the list holds the errors.
func ExampleCheck() {
	text := []byte("const bit<8> A = 3;\nconst bit<16> B = A ++ 8w1;\nconst bit<8> C = B;\n")
	file, errs := syntax.Parse(syntax.OneFile("c.p4", text), "c.p4", syntax.Options{})
	if err := errs.Err(); err != nil {
		log.Fatal(err)
	}
	info, errs := types.Check(file)
	fmt.Println(info.Top["B"].Type, info.Top["B"].Value)
	fmt.Println(errs)
	// Output:
	// bit<16> 769
	// c.p4:3:18: B has type bit<16>, but the constant C needs bit<8>; cast it: (bit<8>)
}
