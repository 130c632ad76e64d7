package syntax

import (
	"iter"
	"reflect"
)

// Inspect calls f for root and, where f returns true, for all that is below
// it, in the order of the source; only the parts of a table come by their kind.
func Inspect(root Node, f func(Node) bool) {
	if isNil(root) || !f(root) {
		return
	}
	Children(root, func(n Node) { Inspect(n, f) })
}

// Each gives root and all nodes below it that are an N, in Inspect's order.
func Each[N Node](root Node) iter.Seq[N] {
	return func(yield func(N) bool) {
		more := true
		Inspect(root, func(n Node) bool {
			if x, ok := n.(N); ok && more {
				more = yield(x)
			}
			return more
		})
	}
}

// isNil reports whether n is nil or holds a nil pointer.
func isNil(n Node) bool { return n == nil || reflect.ValueOf(n).IsNil() }

// Children calls visit for each node right below n, in Inspect's order; what
// is absent is left out. The nodes below one are its fields and the elements of
// its fields, so that a struct in nodes.go has them in the order of the source.
func Children(n Node, visit func(Node)) { visitFields(reflect.ValueOf(n).Elem(), visit) }

func visitFields(v reflect.Value, visit func(Node)) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Slice:
			for j := range f.Len() {
				visitField(f.Index(j), visit)
			}
		case v.Type().Field(i).Anonymous:
			visitFields(f, visit)
		default:
			visitField(f, visit)
		}
	}
}

// AnnotationsOf is the annotations of a node, nil where it takes none.
func AnnotationsOf(n Node) Annotations {
	if f := reflect.ValueOf(n).Elem().FieldByName("Annotations"); f.IsValid() {
		return f.Interface().(Annotations)
	}
	return nil
}

func visitField(f reflect.Value, visit func(Node)) {
	if k := f.Kind(); (k != reflect.Pointer && k != reflect.Interface) || f.IsNil() {
		return
	}
	if n, ok := f.Interface().(Node); ok {
		visit(n)
	}
}
