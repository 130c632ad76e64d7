package plain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
