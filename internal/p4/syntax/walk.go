package syntax

import (
	"iter"
	"reflect"
)

// Inspect calls f for root. If f returns true, it does the same for the nodes
// below, in the order of the source. The parts of a table come grouped by kind.
func Inspect(root Node, f func(Node) bool) {
	if isNil(root) || !f(root) {
		return
	}
	Children(root, func(n Node) { Inspect(n, f) })
}

// Each returns root and the nodes below it that have type N, in Inspect's order.
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

// Children calls visit for each child of n, in Inspect's order, except for nil
// ones. The children are the node's fields and the elements of slices, so the
// structs in nodes.go must list fields in the order of the source.
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

// AnnotationsOf returns the annotations of a node, or nil if its type has none.
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
