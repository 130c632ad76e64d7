package main

import (
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/play"
	"github.com/p4lb/p4lb/internal/play/share"
)

// TestPlayLinks opens each link to the playground: it names something that exists, and
// an experiment begins to run.
func TestPlayLinks(t *testing.T) {
	s := &site{root: "../../..", dir: t.TempDir()}
	if err := s.build(); err != nil {
		t.Fatal(err)
	}
	var list play.Listing
	ask(t.Context(), t, "list", struct{}{}, &list)
	known := map[string]bool{"": true}
	for _, r := range list.Rows {
		known["program="+r.Name] = true
	}
	for _, x := range list.Experiments {
		known["experiment="+x.Name] = true
	}
	link := regexp.MustCompile(`href="[^"]*play/index\.html#?([^"]*)"`)
	count := 0
	for _, p := range s.pages {
		text, err := os.ReadFile(filepath.Join(s.dir, p.Name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			count++
			code, packed := strings.CutPrefix(html.UnescapeString(m[1]), "s=")
			if !packed {
				if !known[code] {
					t.Errorf("%s leads to %s, which does not exist", p.Name, code)
				}
				continue
			}
			data, err := base64.RawURLEncoding.DecodeString(code)
			if err != nil {
				t.Fatal(err)
			}
			var state share.State
			if err := json.NewDecoder(flate.NewReader(strings.NewReader(string(data)))).Decode(&state); err != nil {
				t.Fatal(err)
			}
			begins(t, p.Name, state)
		}
	}
	if count < 50 {
		t.Errorf("%d links, want one for each scheme and experiment of the papers", count)
	}
}

// begins checks a program, or begins to run an experiment and stops it.
func begins(t *testing.T, page string, s share.State) {
	t.Helper()
	if s.YAML == "" {
		var c play.Checked
		ask(t.Context(), t, "check", play.Source{Name: s.Name, Text: s.Program}, &c)
		for _, m := range c.Messages {
			t.Errorf("%s: %s:%d: %s", page, s.Name, m.Line, m.Text)
		}
		return
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var e play.Error
	ask(ctx, t, "run", play.RunRequest{YAML: s.YAML}, &e)
	if !strings.Contains(e.Message, context.Canceled.Error()) {
		t.Errorf("%s: an experiment does not run: %s, line %d", page, e.Message, e.Line)
	}
}

func ask(ctx context.Context, t *testing.T, name string, request, answer any) {
	t.Helper()
	text, err := json.Marshal(request)
	if err == nil {
		err = json.Unmarshal(play.Call(ctx, name, text, nil), answer)
	}
	if err != nil {
		t.Fatal(err)
	}
}
