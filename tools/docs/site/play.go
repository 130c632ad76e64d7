package main

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"

	"github.com/p4lb/p4lb/internal/play/share"
)

// offer adds a link to the playground below each experiment and program of a page, and
// at the top of the pages of papers and of the playground.
func (s *site) offer(p *page, doc ast.Node, source []byte) {
	base := strings.Repeat("../", strings.Count(p.Name, "/")) + "play/index.html"
	var next ast.Node
	for n := doc.FirstChild(); n != nil; n = next {
		next = n.NextSibling()
		switch n.(type) {
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if to := opens(base, code(n, source)); to != "" {
				doc.InsertAfter(doc, n, linked([2]string{"Open in the playground", to}))
			}
		}
	}
	first := doc.FirstChild()
	switch paper, isPaper := strings.CutPrefix(strings.TrimSuffix(p.Name, ".html"), "reproduction/"); {
	case first == nil:
	case p.Name == "playground.html":
		doc.InsertAfter(doc, first, linked([2]string{"Open the playground", base}))
	case isPaper:
		files, _ := filepath.Glob(filepath.Join(s.root, "internal", "lab", "papers", paper+"-*.yaml")) // a constant pattern cannot fail
		var list [][2]string
		for _, f := range files {
			name := strings.TrimSuffix(filepath.Base(f), ".yaml")
			list = append(list, [2]string{name, base + "#experiment=" + name})
		}
		if len(list) > 0 {
			doc.InsertAfter(doc, first, linked(list...))
		}
	}
}

// linked returns a paragraph of links.
func linked(list ...[2]string) ast.Node {
	p := ast.NewParagraph()
	if len(list) > 1 {
		p.AppendChild(p, ast.NewString([]byte("Open in the playground: ")))
	}
	for i, l := range list {
		if i > 0 {
			p.AppendChild(p, ast.NewString([]byte(", ")))
		}
		link := ast.NewLink()
		link.Destination = []byte(l[1])
		link.AppendChild(link, ast.NewString([]byte(l[0])))
		p.AppendChild(p, link)
	}
	return p
}

// code returns the text of a block of code.
func code(n ast.Node, source []byte) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(source))
	}
	return b.String()
}

var (
	experimentKeys = regexp.MustCompile(`(?m)^(schemes|traffic):`)
	realWorlds     = regexp.MustCompile(`(?m)^ *- *(\{scheme: )?\./|coeffs:|\.yaml|\.csv|\.json`)
	mainPackage    = regexp.MustCompile(`(?m)^[A-Z]\w*\(.*\) *main;`)
)

// opens returns the playground's address for a block of code, or "" if the block is
// neither a complete experiment nor a complete program. It excludes experiments
// that read files.
func opens(base, text string) string {
	switch {
	case strings.Contains(text, "…"): // an excerpt
	case len(experimentKeys.FindAllString(text, 2)) == 2 && !realWorlds.MatchString(text):
		return share.Link(base, share.State{View: "network", YAML: text})
	case strings.Contains(text, "#include <core.p4>") && mainPackage.MatchString(text):
		return share.Link(base, share.State{View: "write", Name: "program.p4", Program: text})
	}
	return ""
}
