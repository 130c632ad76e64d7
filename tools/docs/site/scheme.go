package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// papers are the papers with measured numbers, each with its own page.
var papers = []string{"qall", "qdaps", "rlb", "pdlb", "dhlb"}

// schemes adds a page for each scheme and a list of all schemes.
func (s *site) schemes() error {
	taken, err := s.resources()
	if err != nil {
		return err
	}
	var results []result
	for _, p := range papers {
		text, err := os.ReadFile(filepath.Join(s.root, "docs", "reproduction", p+".md"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if strings.Count(line, "|") == 6 && strings.HasPrefix(line, "| fig") || strings.HasPrefix(line, "| table") {
				results = append(results, result{p, strings.TrimSpace(line)})
			}
		}
	}
	var list strings.Builder
	list.WriteString("# Schemes\n\nThe schemes of `p4lb schemes`, each with its program, its parameters and measured results.\n\n| scheme | granularity | signal | choice | guard | summary |\n|---|---|---|---|---|---|\n")
	for _, row := range codegen.Rows() {
		fmt.Fprintf(&list, "| [%s](%s.html) | %s | %s | %s | %s | %s |\n", row.Name, row.Name, row.Granularity, row.Signal, row.Choice, row.Guard, row.Title)
		text, err := s.scheme(row, taken, results)
		if err != nil {
			return fmt.Errorf("the page of %s: %w", row.Name, err)
		}
		s.add(&page{Name: "schemes/" + row.Name + ".html", text: text})
	}
	s.add(&page{Name: "schemes/index.html", text: list.String()})
	return nil
}

// scheme returns the page of a row.
func (s *site) scheme(row codegen.Row, taken map[string][]string, results []result) (string, error) {
	made, err := codegen.Generate(row, codegen.Params{})
	if err != nil {
		return "", err
	}
	program, err := os.ReadFile(filepath.Join(s.root, "p4src", "v1model", row.Name+".p4"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s.\n\n%s\n\n", row.Name, upper(row.Title), picture(row))
	fmt.Fprintf(&b, "After %s.\n\n", row.Source)
	fmt.Fprintf(&b, "    p4lb gen --scheme %[1]s -o out\n    p4lb lab --scheme %[1]s --vs ecmp\n    p4lb deploy --scheme %[1]s --topology qall\n\n[Open in the playground](../play/index.html#program=%[1]s)\n\n", row.Name)
	parameters(&b, row.Parameters())
	registers(&b, &made.Manifest)
	s.highlights(&b, row, string(program))
	if err := s.hardware(&b, row, taken); err != nil {
		return "", err
	}
	measured(&b, row, results)
	return b.String(), nil
}

// picture draws the row's blocks, from a packet to its path.
func picture(row codegen.Row) string {
	var b strings.Builder
	blocks := row.Blocks()
	b.WriteString(`<div class="wide"><svg class="scheme" viewBox="0 0 740 84" role="img" aria-label="the blocks of ` + html.EscapeString(row.Name) + `">`)
	for i, block := range blocks {
		x := 2 + 186*i
		fmt.Fprintf(&b, `<rect x="%d" y="14" width="160" height="56" rx="5"/><text class="kind" x="%d" y="35">%s</text><text x="%d" y="57">%s</text>`,
			x, x+12, html.EscapeString(block.Kind), x+12, html.EscapeString(block.Name))
		if i > 0 {
			fmt.Fprintf(&b, `<path d="M%d 42h20m-6-5l6 5l-6 5"/>`, x-23)
		}
	}
	b.WriteString("</svg></div>\n\n")
	for _, block := range blocks {
		if block.About != "" && block.Name != "none" {
			fmt.Fprintf(&b, "- %s **%s**: %s\n", block.Kind, block.Name, block.About)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func parameters(b *strings.Builder, list []codegen.Param) {
	if len(list) == 0 {
		b.WriteString("## Parameters\n\nThis scheme has no parameters.\n\n")
		return
	}
	b.WriteString("## Parameters\n\nSet them with `--set NAME=VALUE`. `p4lb advise` computes parameters that depend on the network.\n\n| parameter | unit | default | from | to | meaning | source in the paper |\n|---|---|---|---|---|---|---|\n")
	for _, p := range list {
		fmt.Fprintf(b, "| `%s` | %v | %s | %s | %s | %s | %s |\n", p.Name, p.Unit, cell(p.Default), cell(p.Min), cell(p.Max), cell(p.Meaning), cell(p.Source))
	}
	b.WriteByte('\n')
}

func registers(b *strings.Builder, m *manifest.Manifest) {
	b.WriteString("## Registers\n\n")
	if len(m.Registers) == 0 {
		b.WriteString("A leaf keeps no state between packets.\n\n")
		return
	}
	b.WriteString("The state of a leaf between packets, for BMv2. `p4lb inspect` shows it with its meaning.\n\n| register | index | unit | written by | meaning |\n|---|---|---|---|---|\n")
	for _, r := range m.Registers {
		fmt.Fprintf(b, "| `%s` | %v | %v | %v | %s |\n", r.Name, r.Index, r.Unit, r.Writer, cell(r.Meaning))
	}
	b.WriteByte('\n')
}

// highlights lists the parts of the program that cite an equation, an
// algorithm, a figure or a section, and the comments about the paper itself.
func (s *site) highlights(b *strings.Builder, row codegen.Row, program string) {
	named := regexp.MustCompile(`\b(Eq|Alg|Fig|Table|Section|Sec)\b\.? `)
	var shown, wrong []string
	_, body, _ := strings.Cut(program, "#include") // after the comment at the top
	for _, c := range comments(body) {
		switch {
		case strings.Contains(strings.ToLower(c.text), "the paper"):
			wrong = append(wrong, c.text)
		case named.MatchString(c.text) && len(c.code) > 1 && len(shown) < 4 && !c.inside:
			shown = append(shown, strings.Join(c.lines, "\n"))
		}
	}
	fmt.Fprintf(b, "## The program\n\n[%s.p4](%sp4src/v1model/%s.p4) for groups of up to 4 paths, %d lines.", row.Name, repository, row.Name, strings.Count(program, "\n"))
	if len(shown) > 0 {
		b.WriteString(" The parts that follow the paper most closely:\n\n```p4\n" + strings.Join(shown, "\n\n") + "\n```")
	}
	b.WriteString("\n\n")
	if len(wrong) > 0 {
		b.WriteString("## Errors and omissions in the paper\n\nFrom the comments of the program:\n\n")
		for _, w := range slices.Compact(wrong) {
			fmt.Fprintf(b, "- %s\n", w)
		}
		b.WriteByte('\n')
	}
}

// A comment is a comment of a program with the code that follows it up to an empty
// line, as printed.
type comment struct {
	text   string
	code   []string
	lines  []string
	inside bool // in the code of another comment
}

func comments(program string) []comment {
	var list []comment
	lines := strings.Split(program, "\n")
	end := 0 // end of the code of the previous comment
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(strings.TrimSpace(lines[i]), "//") {
			continue
		}
		c := comment{inside: i < end}
		var said []string
		for ; i < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[i]), "//"); i++ {
			said = append(said, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lines[i]), "//")))
			c.lines = append(c.lines, lines[i])
		}
		for _, line := range lines[i:] {
			if strings.TrimSpace(line) == "" || len(c.code) == 14 {
				break
			}
			c.code = append(c.code, line)
			c.lines = append(c.lines, line)
		}
		if !c.inside {
			end = i + len(c.code)
		}
		i--
		c.text = strings.Join(said, " ")
		indent := len(c.lines[0]) - len(strings.TrimLeft(c.lines[0], " "))
		for j, l := range c.lines {
			c.lines[j] = l[min(indent, len(l)-len(strings.TrimLeft(l, " "))):]
		}
		list = append(list, c)
	}
	return list
}

// hardware describes the program's resources on Tofino and its deviations
// there.
func (s *site) hardware(b *strings.Builder, row codegen.Row, taken map[string][]string) error {
	b.WriteString("## On Tofino\n\n")
	var rows []string
	var deviations []manifest.Deviation
	for _, arch := range []string{"tna", "t2na"} {
		made, err := codegen.Generate(row, codegen.Params{Arch: arch})
		if err == nil {
			deviations = append(deviations, made.Manifest.Deviations...)
		}
		if t := taken[arch+" "+row.Name]; t != nil {
			rows = append(rows, "| "+strings.Join(t, " | ")+" |\n")
		} else if err != nil {
			fmt.Fprintf(b, "%s.\n\n", upper(err.Error()))
		}
	}
	if len(rows) > 0 {
		b.WriteString("According to the open compiler, for groups of 4 paths ([meaning of the columns](../tofino.html)):\n\n| architecture | ingress + egress stages | SRAM | TCAM | stateful ALUs | |\n|---|---|---|---|---|---|\n" + strings.Join(rows, "") + "\n")
	} else {
		b.WriteString("No figures of the compiler have been recorded for this scheme; [docs/tofino](../tofino.html) has the figures of related schemes.\n\n")
	}
	seen := map[string]bool{}
	for _, d := range deviations {
		if seen[d.What] {
			continue
		}
		if len(seen) == 0 {
			b.WriteString("The hardware program deviates from the original:\n\n| deviation | reason | effect |\n|---|---|---|\n")
		}
		seen[d.What] = true
		fmt.Fprintf(b, "| %s | %s | %s |\n", cell(d.What), cell(d.Why), cell(d.Error))
	}
	b.WriteByte('\n')
	return nil
}

// resources reads the recorded resource usage reported by p4c for groups of 4
// paths.
func (s *site) resources() (map[string][]string, error) {
	f, err := os.Open(filepath.Join(s.root, "testdata", "oracle", "tofino.tsv"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.Comment, r.LazyQuotes = '\t', '#', true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	taken := map[string][]string{}
	at := func(row []string, name string) string { return row[slices.Index(rows[0], name)] }
	for _, row := range rows[1:] {
		if at(row, "PATHS") != "4" {
			continue
		}
		stages := at(row, "INGRESS") + " + " + at(row, "EGRESS")
		if at(row, "INGRESS") == "-" {
			stages = "does not fit"
		}
		taken[at(row, "ARCH")+" "+at(row, "SCHEME")] = []string{at(row, "ARCH"), stages, at(row, "SRAM"), at(row, "TCAM"), at(row, "SALU"), at(row, "NOTE")}
	}
	return taken, nil
}

// A result is a row of docs/reproduction.
type result struct{ paper, line string }

// measured lists the printed numbers that name the row.
func measured(b *strings.Builder, row codegen.Row, results []result) {
	b.WriteString("## Results\n\n")
	var lines []string
	for _, r := range results {
		cells := strings.Split(r.line, "|")
		if len(cells) > 5 && names(cells[2], row.Name) {
			lines = append(lines, fmt.Sprintf("| [%[1]s](../reproduction/%[1]s.html) %s\n", r.paper, r.line))
		}
	}
	if len(lines) == 0 {
		b.WriteString("No measured number of the papers names only this scheme; [reproduction](../reproduction.html) has all of them.\n")
		return
	}
	fmt.Fprintf(b, "The %d rows of [the papers' numbers](../reproduction.html) that name it:\n\n| paper | | target | printed | measured | verdict |\n|---|---|---|---|---|---|\n%s", len(lines), strings.Join(lines, ""))
}

// names reports whether a target concerns a row. RLB compares its own variants
// in words: "DRILL with RLB below without" concerns drill and drill+rlb, "DRILL
// with RLB* below RLB" both guards.
func names(target, row string) bool {
	base, guard, _ := strings.Cut(row, "+")
	if plain, ok := strings.CutSuffix(base, "-star"); ok {
		base = plain + "*" // QDAPS*
	}
	if !regexp.MustCompile(`(?i)(^|[^a-z0-9+-])` + regexp.QuoteMeta(base) + `($|[^a-z0-9+*-])`).MatchString(target) {
		return false
	}
	star := strings.Contains(target, "with RLB*")
	forms := strings.Contains(target, "with recirculation") // compares warnings with and without recirculation
	switch guard {
	case "":
		return !star && !forms
	case "rlb":
		return star || forms || strings.Contains(target, "with RLB")
	case "rlb-star":
		return star
	}
	return false
}

// cell escapes text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// upper turns an error or a title into a sentence.
func upper(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
