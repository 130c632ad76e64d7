package own

import (
	"bytes"
	"embed"
	"fmt"
	"regexp"
	"sync"
)

// scaffold is an example scheme called NAME.
//
//go:embed scaffold
var scaffold embed.FS

// A File is a file of the example scheme.
type File struct {
	Name  string
	Text  []byte
	About string
}

// word matches valid names of schemes.
var word = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
})

// Scaffold returns a small working scheme: a program, its manifest, packet
// tests and an experiment.
func Scaffold(name string) ([]File, error) {
	if !word().MatchString(name) {
		return nil, fmt.Errorf("%q is not a valid name of a scheme: want letters, digits, _ and -, starting with a letter", name)
	}
	list := []File{
		{Name: name + ".p4", About: "the program"},
		{Name: name + ".manifest.yaml", About: "its manifest"},
		{Name: name + ".stf", About: "packet tests for p4lb test"},
		{Name: "experiment.yaml", About: "experiment for p4lb lab run"},
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
