package experiment

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
)

// TestShownRuns: what lab paper --show prints is a file of all experiments.
func TestShownRuns(t *testing.T) {
	for _, paper := range lab.Papers() {
		list, err := lab.Paper(paper, "", false)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		c := cli.New(t.Context(), nil, strings.NewReader(""), &out, &out)
		if err := showPaper(c, list); err != nil {
			t.Fatal(err)
		}
		c.Out.Flush()
		name := filepath.Join(t.TempDir(), "shown.yaml")
		if err := os.WriteFile(name, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		q := &labChoice{}
		got, err := q.file(c, name)
		if err != nil {
			t.Fatalf("%s: %v", paper, err)
		}
		if len(got) != len(list) {
			t.Fatalf("%s: %d experiments of %d", paper, len(got), len(list))
		}
		for i := range got {
			if got[i].Name != list[i].Name || len(got[i].Targets) != len(list[i].Targets) {
				t.Errorf("%s: %s instead of %s", paper, got[i].Name, list[i].Name)
			}
		}
	}
}

// TestDocuments: messages about a later experiment of a file have its lines.
func TestDocuments(t *testing.T) {
	name := filepath.Join(t.TempDir(), "two.yaml")
	if err := os.WriteFile(name, []byte("---\nschemes: [ecmp]\n---\n# two\nname: b\nschemes: [ecmp]\nloads: [7]\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	c := &cli.Console{Out: bufio.NewWriter(&bytes.Buffer{})}
	if _, err := (&labChoice{}).file(c, name); err == nil || !strings.Contains(err.Error(), "two.yaml:7: loads[0]: load 7") {
		t.Errorf("%v", err)
	}
}
