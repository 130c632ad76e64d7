package codegen

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/templates"
)

// TestOwnBlocks applies the checks for user blocks to p4lb's own blocks and rows, and
// checks that every file has a position in the skeleton's order.
func TestOwnBlocks(t *testing.T) {
	c := Standard()
	rows, err := readRows("templates", templates.FS)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.check(slices.Concat(c.software.blocks, c.hardware().blocks), rows); err != nil {
		t.Error(err)
	}
	for _, s := range []*shelf{c.software, c.hardware()} {
		named := 0
		for _, k := range allKinds {
			for _, name := range s.skeleton.Order[k] {
				named++
				if b := s.lookup(k, name); b == nil {
					t.Errorf("%s: there is no %s %s", s.skeleton.file.name, k, name)
				} else if want := string(k) + "-" + name + extension; path.Base(b.file.name) != want {
					t.Errorf("%s: want its name to be %s", b.file.name, want)
				}
			}
		}
		if len(s.blocks) != named {
			t.Errorf("%s: %d blocks, %d of them in order", s.skeleton.file.name, len(s.blocks), named)
		}
	}
	for _, b := range c.hardware().blocks {
		for _, p := range b.Parameters {
			if p.Unit != "" {
				t.Errorf("%s declares %s: that is for v1model, which is read first", b.file.name, p.Name)
			}
		}
	}
}

// TestTemplateLines: an error in a template has the line of the file.
func TestTemplateLines(t *testing.T) {
	err := fs.WalkDir(templates.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != extension {
			return err
		}
		text, err := fs.ReadFile(templates.FS, name)
		if err != nil {
			return err
		}
		f, err := newSource(name, string(text)+"{{broken}}")
		if err != nil {
			t.Error(err)
			return nil
		}
		_, err = parseTemplate(f.name, f.padded())
		if want := name + ":" + strconv.Itoa(strings.Count(string(text), "\n")+1) + ":"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
