package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// An entry of the search index is the text of a page below one heading.
type entry struct {
	URL     string `json:"url"`
	Page    string `json:"page"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// entries returns the sections of a page, each from its heading to the next one
// of level 1 or 2.
func (p *page) entries(doc ast.Node, source []byte) []entry {
	list := []entry{{URL: p.Name, Page: p.Title}}
	var text strings.Builder
	end := func() {
		list[len(list)-1].Text = strings.Join(strings.Fields(text.String()), " ")
		text.Reset()
	}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok || h.Level > 2 {
			text.WriteString(" " + words(n, source))
			continue
		}
		if h.Level == 1 {
			continue
		}
		end()
		e := entry{URL: p.Name, Page: p.Title, Heading: plainText(h, source)}
		if id, ok := h.AttributeString("id"); ok {
			e.URL += "#" + string(id.([]byte))
		}
		list = append(list, e)
	}
	end()
	return list
}

// words returns the text of a block, code included and HTML excluded.
func words(n ast.Node, source []byte) string {
	var b strings.Builder
	ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				b.Write(line.Value(source))
			}
		default:
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// index returns the search index as a script. A script, unlike a file that is
// fetched, also loads from a local folder.
func index(list []entry) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("window.p4lbSearchIndex = ")
	e := json.NewEncoder(&b) // escapes <, > and &
	if err := e.Encode(list); err != nil {
		return nil, err
	}
	b.Truncate(b.Len() - 1)
	b.WriteString(";\n")
	return b.Bytes(), nil
}
