package format_test

import (
	"fmt"
	"log"

	"github.com/p4lb/p4lb/internal/p4/format"
)

// Format sets indentation and spaces, and keeps comments and lines.
func ExampleFormat() {
	text, err := format.Format([]byte("header h_t{\nbit<8>ttl;// hops\n}\n"), "h.p4")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", text)
	// Output:
	// header h_t {
	//     bit<8> ttl; // hops
	// }
}
