package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
)

// TestSite builds the site of this checkout. Every link leads to an existing
// page, file or heading, every section of a page is in the search index, and
// pages load nothing from other servers.
func TestSite(t *testing.T) {
	s := &site{root: "../../..", dir: t.TempDir()}
	if err := s.build(); err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	ids := map[string]bool{}
	id := regexp.MustCompile(` id="([^"]+)"`)
	for _, p := range s.pages {
		data, err := os.ReadFile(filepath.Join(s.dir, p.Name))
		if err != nil {
			t.Fatal(err)
		}
		text[p.Name] = string(data)
		for _, m := range id.FindAllStringSubmatch(string(data), -1) {
			ids[p.Name+"#"+m[1]] = true
		}
	}
	for _, name := range codegen.Names() {
		if text["schemes/"+name+".html"] == "" {
			t.Errorf("%s has no page", name)
		}
	}
	for _, name := range []string{"index.html", "tutorial.html", "faq.html", "reproduction/qall.html", "decisions/readme.html"} {
		if text[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	headings := map[string]string{}
	for _, e := range s.index {
		headings[e.URL] = e.Heading
		if at, anchor, _ := strings.Cut(e.URL, "#"); text[at] == "" || anchor != "" && !ids[e.URL] {
			t.Errorf("the search index leads to %s, which does not exist", e.URL)
		}
	}
	if want := "3. Start a live network (10 minutes)"; headings["tutorial.html#3-start-a-live-network-10-minutes"] != want {
		t.Errorf("the search index lacks the tutorial's section %q", want)
	}
	if !slices.ContainsFunc(s.index, func(e entry) bool {
		return e.URL == "tutorial.html#4-watch-it-10-minutes" && strings.Contains(e.Text, "p4lb inspect --watch") && strings.Contains(e.Text, "serves the same values to a browser")
	}) {
		t.Error("the search index lacks the commands or the sentences of a section")
	}
	for name, want := range map[string]string{
		"schemes/drill.html":     `href="../play/index.html#program=drill"`,
		"ai-fabrics.html":        `href="play/index.html#s=`,
		"playground.html":        `href="play/index.html"`,
		"reproduction/qall.html": `href="../play/index.html#experiment=qall-fct"`,
	} {
		if !strings.Contains(text[name], want) {
			t.Errorf("%s has no link %s", name, want)
		}
	}
	reference := regexp.MustCompile(` (href|src)="([^"]*)"`)
	for name, page := range text {
		for _, m := range reference.FindAllStringSubmatch(page, -1) {
			s.check(t, name, m[1], m[2], ids)
		}
		if strings.Count(page, "<script") != 1 || strings.Contains(page, "@import") || strings.Contains(page, "url(") {
			t.Errorf("%s fetches something", name)
		}
	}
}

// TestNames: each target is on the pages of the rows that it compares.
func TestNames(t *testing.T) {
	rows := []string{"drill", "drill+rlb", "drill+rlb-star", "hermes", "hermes+rlb", "qdaps", "qdaps-star"}
	for target, want := range map[string]string{
		"p99 of DRILL with RLB below without":                                "drill drill+rlb",
		"PFC pauses of DRILL with RLB* below RLB, black hole":                "drill+rlb drill+rlb-star",
		"p99 of Hermes with recirculation below without, data mining":        "hermes+rlb",
		"p99 of DRILL without PFC below with":                                "drill",
		"average FCT of Hermes with RLB below without, cache follower, 20 %": "hermes hermes+rlb",
		"average FCT of QDAPS* below QDAPS, one path of 300 us":              "qdaps qdaps-star",
		"average FCT of QDAPS* below ECMP":                                   "qdaps-star",
		"qall-poly3 below DRILL":                                             "drill",
	} {
		var got []string
		for _, row := range rows {
			if names(target, row) {
				got = append(got, row)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: on the pages of %q, want %s", target, got, want)
		}
	}
}

// check follows a link of a page.
func (s *site) check(t *testing.T, name, kind, link string, ids map[string]bool) {
	t.Helper()
	if file, ok := strings.CutPrefix(link, repository); ok {
		file, _, _ = strings.Cut(file, "#")
		if _, err := os.Stat(filepath.Join(s.root, file)); err != nil {
			t.Errorf("%s links to %s, which is not a file", name, link)
		}
		return
	}
	if strings.Contains(link, "://") {
		if kind == "src" {
			t.Errorf("%s shows %s, which is elsewhere", name, link)
		}
		return
	}
	to, anchor, _ := strings.Cut(link, "#")
	at := name
	if to != "" {
		at = path.Join(path.Dir(name), to)
	}
	if _, err := os.Stat(filepath.Join(s.dir, at)); err != nil {
		t.Errorf("%s links to %s, which is not there", name, link)
	}
	if strings.HasPrefix(at, "play/") {
		return // the rest is the state of the playground
	}
	if anchor != "" && !ids[at+"#"+anchor] {
		t.Errorf("%s links to %s, and there is no such heading", name, link)
	}
}

// TestComments: a comment belongs to the code up to the next empty line.
func TestComments(t *testing.T) {
	got := comments("    // Eq. 4: C.\n    // The paper's is wrong.\n    c = 1;\n    // inside\n    d = 2;\n\nelse\n// alone\n\nx\n")
	if len(got) != 3 || !got[1].inside || got[2].inside || got[0].text != "Eq. 4: C. The paper's is wrong." || len(got[0].code) != 3 || got[0].lines[2] != "c = 1;" || len(got[2].code) != 0 {
		t.Errorf("%+v", got)
	}
}
