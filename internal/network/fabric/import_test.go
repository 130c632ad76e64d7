package fabric

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

// TestImport imports each X.json of an archive and compares the result with
// X.yaml and X.notes, or with X.errors.
func TestImport(t *testing.T) {
	eachArchive(t, "import", func(t *testing.T, a *txtar.Archive) map[string]string {
		got := map[string]string{}
		for _, file := range a.Files {
			name, ok := strings.CutSuffix(file.Name, ".json")
			if !ok {
				continue
			}
			top, notes, err := Imports{}.Import(file.Name, file.Data)
			if err != nil {
				got[name+".errors"] = err.Error() + "\n"
				continue
			}
			got[name+".yaml"] = string(top.YAML())
			got[name+".notes"] = strings.Join(append(notes, ""), "\n")
		}
		return got
	})
}

// TestImportDefaults: links without values get the caller's defaults.
func TestImportDefaults(t *testing.T) {
	text := `{"hosts": {"h1": {}}, "switches": {"s1": {}, "s2": {}}, "links": [["h1", "s1"], ["s1", "s2", 3, 2.5]]}`
	top, notes, err := Imports{Rate: 20 * Mbps, Delay: us}.Import("t.json", []byte(text))
	if err != nil || len(notes) != 1 || notes[0] != "t.json: links without a rate (1) have 20Mbps" {
		t.Fatalf("notes %q (%v)", notes, err)
	}
	if l := top.Links[0]; l.Rate != 20*Mbps || l.Delay != us {
		t.Errorf("%v: %v, %v", l, l.Rate, l.Delay)
	}
	if l := top.Links[1]; l.Rate != 2500*Kbps || l.Delay != 3*time.Millisecond {
		t.Errorf("%v: %v, %v", l, l.Rate, l.Delay)
	}
}

func FuzzImport(f *testing.F) {
	paths, err := filepath.Glob("testdata/import/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		top, _, err := Imports{}.Import("fuzz.json", text)
		if (top == nil) != (err != nil) {
			t.Fatalf("got %v and %v", top, err)
		}
		if err != nil {
			checkMessage(t, err)
			return
		}
		checkUse(t, top)
	})
}
