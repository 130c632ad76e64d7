package templates

import (
	"io/fs"
	"strings"
	"testing"
)

// window is the number of consecutive lines that may not occur twice.
const window = 3

// TestNothingTwice reports passages that occur twice in the templates: a passage that two
// blocks need must be a separate part.
func TestNothingTwice(t *testing.T) {
	for _, architecture := range []string{"v1model"} {
		names, err := fs.Glob(FS, architecture+"/*.tmpl")
		if err != nil || len(names) < 20 {
			t.Fatal(names, err)
		}
		seen := map[string]string{}
		for _, name := range names {
			text, err := fs.ReadFile(FS, name)
			if err != nil {
				t.Fatal(err)
			}
			lines := passages(body(string(text)))
			for i := range len(lines) - window + 1 {
				passage := strings.Join(lines[i:i+window], "\n")
				if where, ok := seen[passage]; ok {
					t.Errorf("in %s and in %s:\n%s", where, name, passage)
				}
				seen[passage] = name
			}
		}
	}
}

// body returns the text after the header of a block.
func body(text string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	return rest
}

// passages returns the lines with content, without lines of tables, brackets and
// templates, which resemble each other by nature.
func passages(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case len(line) < 8, strings.HasPrefix(line, "{{"), strings.HasPrefix(line, "table "), strings.HasPrefix(line, "key = "),
			strings.HasPrefix(line, "actions = "), strings.HasPrefix(line, "default_action"), strings.HasPrefix(line, "size = "),
			strings.HasSuffix(line, ": exact;"):
		default:
			list = append(list, line)
		}
	}
	return list
}
