package plain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// JSONError explains an error of package json about a text without Go terms,
// and returns its line.
func JSONError(text []byte, err error) (line int, why error) {
	at := func(offset int64) int {
		return 1 + bytes.Count(text[:min(max(offset, 0), int64(len(text)))], []byte{'\n'})
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && strings.HasSuffix(syntax.Error(), "max depth"):
		return at(syntax.Offset), errors.New("brackets and braces are nested more than 10000 deep")
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(text)):
		return at(syntax.Offset), errors.New("unexpected end")
	case errors.As(err, &syntax):
		return at(syntax.Offset), errors.New("invalid JSON from here on")
	case errors.As(err, &kind) && kind.Field == "":
		return at(kind.Offset), fmt.Errorf("want %s, got %s", kindName(kind.Type), kind.Value)
	case errors.As(err, &kind):
		return at(kind.Offset), fmt.Errorf("%s: want %s, got %s", kind.Field, kindName(kind.Type), kind.Value)
	}
	return at(int64(len(text))), err
}

// kindName describes a Go type in terms of YAML.
func kindName(t reflect.Type) string {
	if t == nil {
		return "nothing"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindName(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number of at least 0"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "keys with values"
}
