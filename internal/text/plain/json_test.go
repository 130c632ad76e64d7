package plain

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJSONError(t *testing.T) {
	var into struct {
		N    int `json:"n"`
		List []struct {
			F float64 `json:"f"`
		} `json:"list"`
	}
	for text, want := range map[string]struct {
		line int
		why  string
	}{
		"":                                {1, "unexpected end"},
		"{\"n\":\n":                       {2, "unexpected end"},
		"{\n\"n\": nan}":                  {2, "invalid JSON from here on"},
		"{\"n\":\n1.5}":                   {2, "n: want a whole number, got number 1.5"},
		"{\"list\": [{\"f\":\n[]}]}":      {2, "list.f: want a number, got array"},
		"\n" + strings.Repeat("[", 10001): {2, "brackets and braces are nested more than 10000 deep"},
		"[]":                              {1, "want keys with values, got array"},
	} {
		err := json.Unmarshal([]byte(text), &into)
		if err == nil {
			t.Errorf("%q is read", text)
			continue
		}
		if line, why := JSONError([]byte(text), err); line != want.line || why.Error() != want.why {
			t.Errorf("%q: line %d: %v, want line %d: %s", text, line, why, want.line, want.why)
		}
	}
}
