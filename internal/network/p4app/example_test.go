package p4app_test

import (
	"fmt"
	"log"
	"os"

	"github.com/p4lb/p4lb/internal/network/p4app"
	"github.com/p4lb/p4lb/internal/p4"
)

// Names are resolved before anything is written, and errors contain the line.
func ExampleParseEntries() {
	p, err := p4.Compile(os.DirFS("../../../examples"), "router.p4", p4.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = p4app.ParseEntries("s1-commands.txt", []byte("# routes\ntable_add RouterIngress.routes rout 10.0.1.0/24\n"), p.P4Info)
	fmt.Println(err)
	// Output:
	// s1-commands.txt:2: table RouterIngress.routes: there is no action rout, but RouterIngress.via, RouterIngress.no_route
}
