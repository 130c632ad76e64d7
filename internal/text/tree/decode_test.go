package tree

import (
	"errors"
	"strings"
	"testing"
)

func TestDecodeErrors(t *testing.T) {
	var into struct {
		N    int
		U    uint8
		F    float64
		B    bool
		S    []string
		M    map[string]int
		Text string
	}
	for text, want := range map[string]string{
		"n: .inf":      `".inf": want a whole number`,
		"n: nan":       "want a whole number",
		"n: 1e400":     "want a whole number",
		"u: 300":       `"300": want a whole number of at least 0`,
		"u: -1":        `"-1": want a whole number of at least 0`,
		"f: [1]":       "want a number, not a list",
		"f: often":     "want a number",
		"b: 7":         "want true or false",
		"s: x":         `"x": want a list`,
		"m: [1]":       "want keys with values, not a list",
		"m: {a: {}}":   "want a whole number",
		"text: {a: 1}": "want a text",
		"n: 1\n nn: 2": "",
		"x: 1":         `there is no key "x": want b, f, m, n, s, text, u`,
		"tekst: a":     "did you mean text?",
	} {
		_, err := Unmarshal([]byte(text), &into)
		if err == nil {
			t.Errorf("%q is read", text)
			continue
		}
		var y *Error
		errors.As(err, &y)
		got, line := y.Text, y.Line
		if !strings.Contains(got, want) || strings.Contains(got, "unmarshal") || strings.Contains(got, "\n") || strings.Contains(got, "int") || line == 0 {
			t.Errorf("%q: got %q in line %d, want something with %q", text, got, line, want)
		}
	}
}
