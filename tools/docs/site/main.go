// Command site renders the documentation as HTML: a page for README and each
// Markdown file of docs, and one for each scheme with its program and recorded
// results. Pages load nothing from other servers. Run it in a checkout: make site.
package main

import (
	"cmp"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	playground "github.com/p4lb/p4lb/internal/play/page"
)

// repository is the address of files that are not pages.
const repository = "https://github.com/p4lb/p4lb/blob/main/"

//go:embed page.tmpl style.css search.js
var parts embed.FS

func main() {
	to := flag.String("o", "build/site", "the folder to write into")
	flag.Parse()
	s := &site{root: ".", dir: *to, engine: true}
	if err := s.build(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages, from %s\n", len(s.pages), filepath.Join(*to, "index.html"))
}

// A site is the set of pages to write.
type site struct {
	root  string // the folder of the checkout
	dir   string
	pages []*page
	index []entry // of the search box

	engine bool // build the engine of the playground
}

// A page is a page of the site.
type page struct {
	Name   string // its file in the site, for example schemes/drill.html
	source string // its Markdown file, for example docs/drill.md; "" if it is generated
	text   string // Markdown
	Group  string
	Title  string
}

// groups orders the pages in the margin. Pages without a group come last in
// Reference, by name.
var groups = []struct {
	name  string
	pages []string
}{
	{"Start", []string{"index", "tutorial", "install", "playground", "comparison", "faq", "troubleshooting"}},
	{"Guides", []string{"ai-fabrics", "own-program", "blocks", "live", "inspect", "bmv2", "tofino", "rack", "tools", "worlds", "cluster"}},
	{"Reference", []string{"schemes/index", "metrics", "formats", "manifest", "limits", "glossary", "changelog", "cite"}},
	{"Validation", []string{"reproduction", "reproduction/qall", "reproduction/qdaps", "reproduction/rlb", "reproduction/pdlb", "reproduction/dhlb", "fidelity", "conformance", "p4runtime"}},
	{"Development", []string{"architecture", "decisions/readme", "contributing"}},
}

// Short returns the title up to a colon, for the margin.
func (p *page) Short() string {
	short, _, _ := strings.Cut(p.Title, ": ")
	return short
}

func (s *site) build() error {
	if err := s.read(); err != nil {
		return err
	}
	if err := s.schemes(); err != nil {
		return err
	}
	s.sort()
	for _, p := range s.pages {
		html, err := s.render(p)
		if err != nil {
			return fmt.Errorf("rendering %s: %w", p.Name, err)
		}
		if err := s.write(p.Name, html); err != nil {
			return err
		}
	}
	if err := s.copy(); err != nil {
		return err
	}
	to := filepath.Join(s.dir, "play")
	if s.engine {
		return playground.Write(to, s.root)
	}
	return playground.WriteFiles(to)
}

// read reads the Markdown files of the checkout.
func (s *site) read() error {
	files := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	err := fs.WalkDir(os.DirFS(s.root), "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(s.root, f))
		if err != nil {
			return err
		}
		s.add(&page{Name: target(f), source: f, text: string(text)})
	}
	return nil
}

// target returns the name of the page for a Markdown file.
func target(file string) string {
	if file == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(file), "docs/"), ".md") + ".html"
}

// add adds a page. Its first heading becomes the title.
func (s *site) add(p *page) {
	p.Title, _, _ = strings.Cut(strings.TrimPrefix(p.text, "# "), "\n")
	s.pages = append(s.pages, p)
}

// sort arranges the pages in the order of the margin and sets their groups.
func (s *site) sort() {
	rank := func(p *page) int {
		name := strings.TrimSuffix(p.Name, ".html")
		for i, g := range groups {
			if j := slices.Index(g.pages, name); j >= 0 {
				p.Group = g.name
				return 100*i + j
			}
		}
		if strings.HasPrefix(name, "schemes/") || strings.HasPrefix(name, "decisions/") {
			return 1000 // index pages come last
		}
		p.Group = "Reference"
		return 299
	}
	slices.SortStableFunc(s.pages, func(a, b *page) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a.Name, b.Name)) })
}

func (s *site) write(name string, data []byte) error {
	to := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o666)
}

// copy copies images and other files that pages refer to.
func (s *site) copy() error {
	var errs []error
	for _, name := range []string{"style.css", "search.js"} {
		data, err := parts.ReadFile(name)
		errs = append(errs, err, s.write(name, data))
	}
	found, err := index(s.index)
	errs = append(errs, err, s.write("search-index.js", found))
	for _, pattern := range []string{"docs/*.svg", "docs/*.png", "docs/*.json"} {
		files, err := filepath.Glob(filepath.Join(s.root, pattern))
		errs = append(errs, err)
		for _, f := range files {
			data, err := os.ReadFile(f)
			errs = append(errs, err, s.write(filepath.Base(f), data))
		}
	}
	return errors.Join(errs...)
}
