package syntax

import (
	"fmt"
	"math/big"
	"reflect"
	"strings"
)

// dump is a tree as text, without positions: two trees are the same where
// their dumps are.
func dump(v any) string {
	var b strings.Builder
	dumpValue(&b, reflect.ValueOf(v))
	return b.String()
}

func dumpValue(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil\n")
			return
		}
		if n, ok := v.Interface().(*big.Int); ok {
			fmt.Fprintln(b, n)
			return
		}
		dumpValue(b, v.Elem())
	case reflect.Slice:
		fmt.Fprintf(b, "%d times\n", v.Len())
		for i := range v.Len() {
			dumpValue(b, v.Index(i))
		}
	case reflect.Struct:
		b.WriteString(v.Type().Name() + " {\n")
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Type == reflect.TypeFor[Pos]() {
				continue
			}
			b.WriteString(f.Name + ": ")
			dumpValue(b, v.Field(i))
		}
		b.WriteString("}\n")
	default:
		fmt.Fprintf(b, "%v\n", v)
	}
}
