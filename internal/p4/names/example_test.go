package names_test

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// A table is called by the control around it, unless its @name is absolute.
func ExampleDeclared() {
	file, _ := syntax.Parse(syntax.OneFile("n.p4", []byte(`@name(".acl") action drop() {} @name("fib") action to() {}`)), "n.p4", syntax.Options{})
	for _, d := range file.Decls {
		a := d.(*syntax.ActionDecl)
		fmt.Println(a.Name.Value, "is", names.Declared("Ingress", a.Annotations, a.Name))
	}
	// Output:
	// drop is acl
	// to is Ingress.fib
}
