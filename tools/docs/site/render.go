package main

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// render returns a page as HTML and adds its sections to the search index.
func (s *site) render(p *page) ([]byte, error) {
	source := []byte(p.text)
	md := goldmark.New(goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithUnsafe())) // the pictures of schemes are SVG
	doc := md.Parser().Parse(text.NewReader(source))
	if err := s.relink(p, doc); err != nil {
		return nil, err
	}
	s.offer(p, doc, source)
	s.index = append(s.index, p.entries(doc, source)...)
	var body, out bytes.Buffer
	if err := md.Renderer().Render(&body, source, doc); err != nil {
		return nil, err
	}
	// Tables wider than a phone scroll on their own.
	wide := strings.NewReplacer("<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>").Replace(body.String())
	t, err := template.ParseFS(parts, "page.tmpl")
	if err != nil {
		return nil, err
	}
	var contents []heading
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok || h.Level != 2 {
			continue
		}
		if id, ok := h.AttributeString("id"); ok {
			contents = append(contents, heading{string(id.([]byte)), plainText(h, source)})
		}
	}
	var margins []margin
	for _, g := range groups {
		m := margin{Name: g.name}
		for _, p := range s.pages {
			if p.Group == g.name {
				m.Pages = append(m.Pages, p)
			}
		}
		margins = append(margins, m)
	}
	err = t.Execute(&out, map[string]any{
		"Page": p, "Body": template.HTML(wide), "Root": strings.Repeat("../", strings.Count(p.Name, "/")),
		"Groups": margins, "Headings": contents,
	})
	return out.Bytes(), err
}

// A margin is a group of pages in the list of pages.
type margin struct {
	Name  string
	Pages []*page
}

// A heading is an item of the table of contents.
type heading struct{ ID, Text string }

func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(source))
		} else {
			b.WriteString(plainText(c, source))
		}
	}
	return b.String()
}

// relink converts links between Markdown files to links between pages, and
// links to other files to links to the repository. A broken link is an error.
func (s *site) relink(p *page, doc ast.Node) error {
	return ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var err error
		switch n := n.(type) {
		case *ast.Link:
			n.Destination, err = s.follow(p, n.Destination)
		case *ast.Image:
			n.Destination, err = s.follow(p, n.Destination)
		}
		return ast.WalkContinue, err
	})
}

// follow returns the target of a page's link in the site.
func (s *site) follow(p *page, link []byte) ([]byte, error) {
	to, anchor, _ := strings.Cut(string(link), "#")
	if to == "" || strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return link, nil
	}
	if anchor != "" {
		anchor = "#" + anchor
	}
	if p.source == "" {
		return link, nil // a generated page uses links of the site
	}
	file := path.Join(path.Dir(p.source), to)
	info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(file)))
	if err != nil {
		return nil, fmt.Errorf("broken link in %s: %s does not exist", p.source, file)
	}
	up := strings.Repeat("../", strings.Count(p.Name, "/"))
	switch {
	case slices.ContainsFunc(s.pages, func(q *page) bool { return q.source == file }):
		return []byte(up + target(file) + anchor), nil
	case !info.IsDir() && path.Dir(file) == "docs":
		return []byte(up + path.Base(file)), nil
	}
	return []byte(repository + file + anchor), nil
}
