package own

import (
	"bytes"
	"embed"
	"fmt"
	"regexp"
	"sync"
)

// scaffold is a scheme to begin with, called NAME.
//
//go:embed scaffold
var scaffold embed.FS

// A File is one of a scheme to begin with.
type File struct {
	Name  string
	Text  []byte
	About string
}

// word is what the name of a scheme can be.
var word = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
})

// Scaffold is a small scheme that works: a program, its manifest, packet tests
// and an experiment.
func Scaffold(name string) ([]File, error) {
	if !word().MatchString(name) {
		return nil, fmt.Errorf("%q cannot be the name of a scheme: want letters, digits, _ and -, a letter first", name)
	}
	list := []File{
		{Name: name + ".p4", About: "the program"},
		{Name: name + ".manifest.yaml", About: "what it means"},
		{Name: name + ".stf", About: "its packet tests: p4lb test"},
		{Name: "experiment.yaml", About: "its experiment: p4lb lab run"},
	}
	for i, from := range []string{"scheme.p4", "manifest.yaml", "tests.stf", "experiment.yaml"} {
		text, err := scaffold.ReadFile("scaffold/" + from)
		if err != nil {
			return nil, fmt.Errorf("reading the scaffold: %w", err)
		}
		list[i].Text = bytes.ReplaceAll(text, []byte("NAME"), []byte(name))
	}
	return list, nil
}
