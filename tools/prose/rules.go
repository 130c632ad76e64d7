package main

import (
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A rule is a pattern of words, with advice for the author.
type rule struct {
	words  string // a regular expression between word boundaries, in any case
	advice string
}

// rules are the phrases of docs that readers had to read twice.
var rules = []rule{
	{`what (?:is|are|was|were|it|they|has|have|had|can|cannot|could|comes?|came|goes|went|stands?|follows|happens?|does|did|must|may|holds?|takes?|gives?|makes?|runs?|ran|needs?|wants?|uses?|leads?|keeps?|kept|asks?|belongs|costs?|counts?|begins?|ends?|lies|lives|fits|moves?|arrives?|leaves?|remains?|waits?|says?)`,
		"name the thing instead of a clause with \"what\""},
	{`nobody|somebody|anybody|everybody|whoever|whom`, "name the client, packet, program or reader"},
	{`(?:that|those) (?:of|which|to|by|in|with|where|from|who)`, "repeat the noun"},
	{`(?:says?|said|tells?|told|speaks?) (?:of|so|what|which|who|how|where|when|whether|nothing)`, "programs return, report, print, describe or specify"},
	{`(?:is|are|was|were|be|been) (?:said|told)`, "programs are notified, report or print"},
	{`anew`, "again"},
	{`mend(?:s|ed|ing)?`, "fix"},
	{`thereby|therein|thereof|lest|save for`, "use a modern word"},
	{`come to nothing|came to nothing|in vain`, "fail"},
	{`for ever`, "forever, or state the limit"},
	{`in the place of`, "instead of"},
	{`that there (?:is|are)`, "existing, or nothing"},
	{`(?:lays?|laid) out`, "format, arrange or store"},
}

// patterns are the compiled rules.
var patterns = sync.OnceValue(func() []*regexp.Regexp {
	var list []*regexp.Regexp
	for _, r := range rules {
		list = append(list, regexp.MustCompile(`(?i)\b(?:`+r.words+`)\b`))
	}
	return list
})

// A finding is a phrase at a line of a file.
type finding struct {
	line           int
	phrase, advice string
}

// check returns the findings in a file, in the order of their lines.
func check(name, text string) []finding {
	var found []finding
	look := func(line int, prose string) {
		for i, p := range patterns() {
			for _, phrase := range p.FindAllString(prose, -1) {
				found = append(found, finding{line, phrase, rules[i].advice})
			}
		}
	}
	if path.Ext(name) == ".md" {
		markdown(text, look)
	} else {
		source(name, text, look)
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.line - b.line })
	return found
}

// markdown passes the lines of a document to look, without code blocks.
func markdown(text string, look func(line int, prose string)) {
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if !fenced && !strings.HasPrefix(line, "    ") {
			look(i+1, line)
		}
	}
}

// source passes comments and strings of four words or more to look, line by
// line. Directives (//go:...) are not prose.
func source(name, text string, look func(line int, prose string)) {
	files := token.NewFileSet()
	file := files.AddFile(name, -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), func(token.Position, string) {}, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		switch tok {
		case token.EOF:
			return
		case token.COMMENT:
			if !strings.HasPrefix(literal, "//go:") {
				lines(file.Line(pos), literal, look)
			}
		case token.STRING:
			value, err := strconv.Unquote(literal)
			if err == nil && len(word().FindAllString(value, 4)) == 4 {
				if literal[0] == '"' {
					value = strings.ReplaceAll(value, "\n", " ")
				}
				if !slices.Contains(ruleWords(), value) {
					lines(file.Line(pos), value, look)
				}
			}
		}
	}
}

var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z']{2,}`) })

// ruleWords are the patterns themselves, which are not prose.
var ruleWords = sync.OnceValue(func() []string {
	var list []string
	for _, r := range rules {
		list = append(list, r.words)
	}
	return list
})

// lines passes each line of a text that begins at a line of a file.
func lines(first int, text string, look func(line int, prose string)) {
	for i, line := range strings.Split(text, "\n") {
		look(first+i, line)
	}
}
