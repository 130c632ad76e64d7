package manifest

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

const reference = "../../../docs/manifest.md"

// TestReference compares the tables of words in the reference with the package.
func TestReference(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][]Word{
		"words Purpose": Purpose("").Words(), "words Fact": Fact("").Words(), "words Index": Index("").Words(), "words Kind": Kind("").Words(),
		"words Unit": Unit("").Words(), "words Members": Members("").Words(), "words TaskKind": TaskKind("").Words(), "each": eachWords(),
		"words Event": Event("").Words(), "words Writer": Writer("").Words(), "words SessionKind": SessionKind("").Words(),
		"words VirtualKind": VirtualKind("").Words(), "words HeaderKind": HeaderKind("").Words(), "words FieldRole": FieldRole("").Words(),
		"words Part": Part("").Words(),
	}
	heads := map[string]string{
		"words Purpose": "purpose", "words Fact": "fact", "words Index": "index", "words Kind": "kind", "words Unit": "unit",
		"words Members": "members", "words TaskKind": "kind", "each": "each",
		"words Event": "event", "words Writer": "writer", "words SessionKind": "kind of a session", "words VirtualKind": "kind of a port",
		"words HeaderKind": "kind", "words FieldRole": "a field carries", "words Part": "part",
	}
	seen := 0
	section := regexp.MustCompile(`(?s)<!-- ([A-Za-z ]+) -->\n.*?<!-- end -->`)
	want := section.ReplaceAllStringFunc(string(text), func(old string) string {
		name := section.FindStringSubmatch(old)[1]
		list, ok := tables[name]
		if !ok {
			t.Fatalf("there is no table %q", name)
		}
		seen++
		return fmt.Sprintf("<!-- %s -->\n%s<!-- end -->", name, table(heads[name], list))
	})
	if seen != len(tables) {
		t.Errorf("%d tables, want %d", seen, len(tables))
	}
	if flag.Lookup("update").Value.String() == "true" { // schema_test.go has it
		if err := os.WriteFile(reference, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s differs from the package: run go test ./internal/scheme/manifest -run Reference -update", reference)
	}
}

func eachWords() []Word {
	var list []Word
	for _, s := range scopes {
		about := s.about
		var facts []string
		for _, f := range s.facts {
			facts = append(facts, "`$"+string(f)+"`")
		}
		if len(facts) > 0 {
			about += ": " + strings.Join(facts, " ")
		}
		list = append(list, Word{s.word, about})
	}
	return append(list, Word{"0..7", "each number of the range: `$i`"})
}

func table(head string, list []Word) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | |\n|---|---|\n", head)
	for _, w := range list {
		fmt.Fprintf(&b, "| `%s` | %s |\n", w.Name, strings.ReplaceAll(w.About, "|", `\|`))
	}
	return b.String()
}

// TestUnmarshalAgain: a text that was read before gives another value, and its errors
// again; no end of texts is kept.
func TestUnmarshalAgain(t *testing.T) {
	text := []byte("- {name: a, purpose: route, keys: [{name: k, match: exact}]}\n")
	var first, second []Table
	if err := Unmarshal("x", text, &first); err != nil {
		t.Fatal(err)
	}
	first[0].Name, first[0].Keys[0].Name = "b", "b"
	if err := Unmarshal("x", text, &second); err != nil || second[0].Name != "a" || second[0].Keys[0].Name != "k" {
		t.Errorf("%+v, %v", second, err)
	}
	for _, file := range []string{"x", "y"} {
		var other []Counter
		if err := Unmarshal(file, text, &other); err == nil || !strings.HasPrefix(err.Error(), file+":1: ") {
			t.Errorf("read as something else: %v", err)
		}
	}
	for i := range maxTrees + 1 {
		if err := Unmarshal("x", fmt.Appendf(nil, "- {name: n%d, purpose: route}", i), &second); err != nil {
			t.Fatal(err)
		}
	}
	if err := Unmarshal("x", []byte(strings.Repeat("- {name: n}\n", maxTreeText/10)), &second); err != nil {
		t.Fatal(err)
	}
	if n := len(trees.read); n > maxTrees {
		t.Errorf("%d texts are kept, want at most %d", n, maxTrees)
	}
	for text := range trees.read {
		if len(text) > maxTreeText {
			t.Errorf("a text of %d bytes is kept, want at most %d", len(text), maxTreeText)
		}
	}
}
