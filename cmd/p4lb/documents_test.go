package main

import (
	"bufio"
	"bytes"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
)

// TestDocumented parses every command in README, docs and examples. Its verbs
// and flags must exist.
func TestDocumented(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../../README.md", "../../CONTRIBUTING.md", "../../docs/session.txt", "../../examples/loop.sh")
	commands := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fenced := filepath.Ext(name) != ".md"
		for n, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if !fenced && !strings.HasPrefix(line, "    ") {
				continue // prose
			}
			for _, command := range commandsOf(strings.TrimSpace(line)) {
				commands++
				if err := parses(command); err != nil {
					t.Errorf("%s:%d: %s: %v", strings.TrimPrefix(name, "../../"), n+1, command, err)
				}
			}
		}
	}
	if commands < 60 {
		t.Errorf("there are %d commands: the test does not see them", commands)
	}
}

// TestExamples checks that every verb has examples, and parses their commands.
func TestExamples(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		if cmd.Example == "" && cmd.Name() != "version" && cmd.Name() != "help" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			for _, command := range commandsOf(strings.TrimSpace(line)) {
				if err := parses(command); err != nil {
					t.Errorf("%s --help: %s: %v", cmd.CommandPath(), command, err)
				}
			}
		}
		for _, verb := range cmd.Commands() {
			check(verb)
		}
	}
	check(newRoot(&cli.Console{Out: bufio.NewWriter(io.Discard), Err: io.Discard}))
}

// TestGroups checks that the help lists every verb in a group, and that all
// verbs in groups exist.
func TestGroups(t *testing.T) {
	root := newRoot(&cli.Console{Out: bufio.NewWriter(io.Discard), Err: io.Discard})
	for _, verb := range root.Commands() {
		if verb.IsAvailableCommand() && verb.GroupID == "" {
			t.Errorf("%s is in no group of verbGroups", verb.Name())
		}
	}
	for _, g := range verbGroups {
		for _, name := range g.verbs {
			if verb, _, err := root.Find([]string{name}); err != nil || verb == root {
				t.Errorf("verbGroups names %s, which is no verb", name)
			}
		}
	}
}

// commandsOf returns the commands in a line of code. The line begins with p4lb,
// or joins several commands by && or |.
func commandsOf(code string) []string {
	var list []string
	for part := range strings.SplitSeq(strings.ReplaceAll(code, "|", "&&"), "&&") {
		part, _, _ = strings.Cut(part, " #")
		part = strings.TrimSpace(part)
		for _, prefix := range []string{"sudo ", "$ ", "bin/", "./"} {
			part = strings.TrimPrefix(part, prefix)
		}
		if strings.HasPrefix(part, "p4lb ") && !strings.ContainsAny(part, "…<>(){}[]`'\"$\\") {
			list = append(list, part)
		}
	}
	return list
}

// parses parses a command line as p4lb does, without running it.
func parses(command string) error {
	c := &cli.Console{Out: bufio.NewWriter(io.Discard), Err: io.Discard}
	root := newRoot(c)
	cmd, rest, err := root.Find(strings.Fields(command)[1:])
	if err != nil {
		return err
	}
	cmd.Flags().AddFlagSet(root.PersistentFlags())
	flags := cmd.Flags()
	flags.SetOutput(io.Discard)
	if i := strings.Index(" "+strings.Join(rest, " ")+" ", " -- "); i >= 0 {
		rest = strings.Fields((" " + strings.Join(rest, " "))[:i])
	}
	if cmd == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return cli.UnknownVerb(cmd, rest[0])
	}
	return flags.Parse(rest)
}

// TestSession compares the picture of a session with the commands of its
// script. make recording updates the picture.
func TestSession(t *testing.T) {
	script, err := os.ReadFile("../../docs/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile("../../docs/session.svg")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for line := range bytes.Lines(script) {
		if s := strings.TrimSpace(string(line)); s != "" && !strings.HasPrefix(s, "#") {
			want = append(want, s)
		}
	}
	for _, m := range regexp.MustCompile(`<text class="l c"[^>]*>\$ ([^<]*)</text>`).FindAllSubmatch(picture, -1) {
		got = append(got, html.UnescapeString(string(m[1])))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the picture shows %q, the script has %q", got, want)
	}
}
