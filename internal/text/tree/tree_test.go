package tree

import (
	"strings"
	"testing"
	"time"
)

const sample = `name: x        # a comment
list:
  - a
  - {b: 1, c.d: yes}
none:
block: |
  two
  lines
`

// TestParse: a tree has the values in order, with their lines.
func TestParse(t *testing.T) {
	n, err := Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := n.String(), "{name: x, list: [a, {b: 1, c.d: yes}], none: null, block: two\nlines\n}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for path, line := range map[string]int{"name": 1, "list": 3, "list[0]": 3, "list[1].b": 4, "list[1].c.d": 4, "none": 5, "block": 6} {
		if at, ok := n.At(path); !ok || at.Line != line {
			t.Errorf("%s: line %d, %v, want %d", path, at.Line, ok, line)
		}
	}
	for path, line := range map[string]int{"list[2]": 3, "list[1].x": 4, "x": 1, "list[-1]": 3, "list[x]": 3} {
		if at, ok := n.At(path); ok || at.Line != line {
			t.Errorf("%s: line %d, %v, want the enclosing line %d", path, at.Line, ok, line)
		}
	}
}

// TestParseErrors: errors name the line.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 2\na: 3":                       `3: there are two keys "a", the other at line 1: want one`,
		"a: 1\n---\nb: 2":                        "3: a second document begins here: want one",
		"a: 1\nb: &x 2":                          "2: want plain keys and values, without anchors, tags and merges",
		"a: 1\nb: !!str 2":                       "2: want plain keys and values, without anchors, tags and merges",
		strings.Repeat("[", 100):                 "1: nested too deeply: more than 64 brackets inside one another",
		"a: 1\nb: {":                             "2: keys and values in braces have no end: want }",
		"a: [1\nb: 2":                            "2: a list does not end here: want , or ]",
		"a: {b: 1":                               "1: keys and values in braces have no end: want }",
		"a: 1\nb: \"x":                           "2: a text has no closing double quote",
		"a: 1\n  b: 2":                           "1: a key cannot stand here",
		"- a\nb: 1":                              "2: a value cannot stand here",
		"\ta: 1":                                 "1: a tab cannot indent: want spaces",
		"{\"a\":":                                "1: a key has no value",
		strings.Repeat("- ", 63) + "[[[" + "]]]": "1: nested too deeply",
	} {
		_, err := Parse([]byte(text))
		at, ok := err.(*Error)
		if !ok {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := string(rune('0'+at.Line)) + ": " + at.Text; !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"{\n\"a\": 1, \"a\": 2}": `2: there are two keys "a"`,
		"{\n":                    "1: unexpected end of file",
		"{}\n{}":                 "2: more than one value",
	} {
		_, err := ParseJSON([]byte(text))
		if at, ok := err.(*Error); !ok || !strings.HasPrefix(string(rune('0'+at.Line))+": "+at.Text, want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestParseLarge: a text in pieces gives the same tree, with the lines of the
// whole text.
func TestParseLarge(t *testing.T) {
	text := "first: 1\nlist:\n" + strings.Repeat("  - {a: 1}\n", 9000) + "last: 2\n"
	n, err := ParseLarge([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(n.Get("list").Items); got != 9000 {
		t.Errorf("%d items", got)
	}
	if at, ok := n.At("list[8999].a"); !ok || at.Line != 9002 {
		t.Errorf("the last item is at line %d", at.Line)
	}
	if _, err := ParseLarge([]byte(text + "first: 3\n")); err == nil || err.(*Error).Line != 9004 {
		t.Errorf("a key that appears twice: %v", err)
	}
}

// A span is a text that is parsed by its type.
type span time.Duration

func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = span(d)
	return err
}

// A shortForm is a name or keys.
type shortForm struct {
	Name string
	Size int
}

func (s *shortForm) UnmarshalNode(n Node) error {
	if n.Kind == Scalar {
		s.Name = n.Text
		return nil
	}
	type long shortForm
	return n.Decode((*long)(s))
}

// TestDecode: values of all kinds, keys by tags, embedded structs, and values
// that stay as they are.
func TestDecode(t *testing.T) {
	type common struct {
		Level float64 `yaml:"level"`
	}
	var got struct {
		common  `yaml:",inline"`
		Inline  common `yaml:",inline"`
		Named   string `json:"a-name,omitempty"`
		Kept    int
		Count   int
		Mask    uint64
		On      bool
		Pointer *int
		Wait    span
		List    []shortForm
		Map     map[string]any
		hidden  int
	}
	got.Kept = 7
	text := `{a-name: 12, kept: null, count: 1e3, mask: 0xff, on: true, pointer: 3, wait: 2s, list: [x, {name: y, size: 4}], map: {a: [1, 2.5, "3", no, true]}}`
	n, err := Unmarshal([]byte(text), &got)
	if err != nil {
		t.Fatal(err)
	}
	if got.Named != "12" || got.Kept != 7 || got.Count != 1000 || got.Mask != 255 || !got.On || *got.Pointer != 3 || time.Duration(got.Wait) != 2*time.Second {
		t.Errorf("got %+v", got)
	}
	if len(got.List) != 2 || got.List[0].Name != "x" || got.List[1] != (shortForm{"y", 4}) {
		t.Errorf("the list is %+v", got.List)
	}
	list := got.Map["a"].([]any)
	if list[0] != 1 || list[1] != 2.5 || list[2] != "3" || list[3] != "no" || list[4] != true {
		t.Errorf("the values are %#v", list)
	}
	if len(n.Fields) != 9 {
		t.Errorf("%d fields", len(n.Fields))
	}
	for text, want := range map[string]string{
		"list: [x, {name: y, sise: 4}]": `list[1].sise: there is no key "sise"; did you mean size?`,
		"wait: soon":                    "wait: time: invalid duration",
		"wait: [1]":                     "wait: want a value, not a list",
		"count: 1.5":                    `count: "1.5": want a whole number`,
		`count: ""`:                     `count: "": want a whole number`,
		`on: "true"`:                    `on: "true": want true or false`,
		"list: [~]":                     "list[0]: is empty",
		"hidden: 1":                     `hidden: there is no key "hidden"`,
	} {
		_, err := Unmarshal([]byte(text), &got)
		if at, ok := err.(*Error); !ok || at.Line != 1 || !strings.HasPrefix(at.Key+": "+at.Text, want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
