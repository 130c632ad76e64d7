package codegen

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/template"
)

// Choice executes a template of the row's choice.
func (v *view) Choice(text string) string { return v.of(v.built(v.runs, choice), text) }

// ReportValues lists the values of a report.
func (v *view) ReportValues() string {
	return strings.Join(strings.Split(v.Place("report.values"), "\n"), ", ")
}

// parseTemplate parses the templates in a file.
func parseTemplate(name, text string) (*template.Template, error) {
	t, err := template.New(name).Funcs(template.FuncMap{"breaks": breaks}).Funcs(printing).Parse(alone().ReplaceAllString(text, "$1{{/*\n*/}}"))
	if err != nil {
		return nil, templateError(err)
	}
	// Make each template and each loop iteration write, to count steps.
	for _, t := range t.Templates() {
		if t.Tree != nil {
			turns(t.Root)
		}
	}
	return t, nil
}

// templateError reformats a template's error to begin with file and line, as other
// errors about a block do.
func templateError(err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "template: "); ok {
		return errors.New(text)
	}
	return err
}

// breaks reports whether a long list has a line break before item i.
func breaks(i int) bool { return i > 0 && i%3 == 0 }

// alone matches a line that contains only control actions. To avoid a blank line,
// the line's end moves into a comment, so that line numbers in messages stay
// correct.
var alone = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*((?:\{\{(?:if|else|end|range|with|/\*)[^}]*\}\})+)[ \t]*\n`)
})

// render renders the program's text and fills the manifest.
func (v *view) render() (string, error) {
	v.describe()
	v.body = v.execute(v.arch.skeleton, "body")
	text := v.execute(v.arch.skeleton, "program")
	if v.err != nil {
		return "", v.err
	}
	text = layOut(text)
	if err := declared(&v.manifest, text); err != nil {
		return "", err
	}
	v.arch.complete(v)
	return text, nil
}

// execute runs one template of a block.
func (v *view) execute(b *block, name string) string {
	if v.err != nil {
		return ""
	}
	t, err := b.template()
	if err != nil {
		v.err = err
		return ""
	}
	use := fmt.Sprintf("%s of %v", name, b)
	if slices.Contains(v.using, use) {
		v.err = fmt.Errorf("%s: %s uses itself: %s", b.file.name, name, strings.Join(append(v.using, use), ", which uses "))
		return ""
	}
	v.using = append(v.using, use)
	defer func() { v.using = v.using[:len(v.using)-1] }()
	text := bounded{steps: &v.steps}
	err = t.ExecuteTemplate(&text, name, v)
	if errors.Is(err, errSteps) || errors.Is(err, errText) {
		err = fmt.Errorf("%s: %s: %w", b.file.name, name, err)
	}
	if err != nil && v.err == nil {
		v.err = templateError(err)
	}
	return text.String()
}

// Body returns the program without its types and constants, which depend on the names
// that it uses.
func (v *view) Body() string { return v.body }

// Place returns the code that the row's blocks contribute to a place.
func (v *view) Place(name string) string {
	if text, ok := v.places[name]; ok {
		return text
	}
	var list []string
	for _, b := range v.blocks {
		if !b.defines(name) {
			continue
		}
		if text := strings.TrimSpace(v.execute(b, name)); text != "" {
			list = append(list, text)
		}
	}
	separator := "\n"
	if slices.Contains(spaced, name) {
		separator = "\n\n"
	}
	text := strings.Join(list, separator)
	v.places[name] = text
	return text
}

// spaced lists the places in which contributions are separated by blank lines.
var spaced = []string{"constants", "headers", "parser.states", "ingress.locals", "egress.locals", "egress.tables", "structs", "controls", "egress.parser.states"}

// Has reports whether any block contributes to a place.
func (v *view) Has(name string) bool { return v.Place(name) != "" }

// Use executes a template of a part.
func (v *view) Use(name, text string) string {
	b := v.arch.lookup(part, name)
	if b == nil {
		v.err = cmp.Or(v.err, fmt.Errorf("there is no part %q", name))
		return ""
	}
	return v.of(b, text)
}

// UseWith executes a template of a part. The template can read word as Text.
func (v *view) UseWith(name, text, word string) string {
	v.word = word
	return v.Use(name, text)
}

// Text returns the word passed to UseWith.
func (v *view) Text() string { return v.word }

// Now returns the expression for the packet's arrival time, in ingress.
func (v *view) Now() string { return v.execute(v.arch.skeleton, "now") }

// Signal executes a template of the row's signal.
func (v *view) Signal(text string) string { return v.of(v.built(v.row, signal), text) }

// Guard executes a template of the row's guard.
func (v *view) Guard(text string) string { return v.of(v.built(v.row, guard), text) }

// Choose returns the statements that set meta.slot.
func (v *view) Choose() string {
	text := v.of(v.built(v.runs, choice), "choose")
	if v.arch.software && v.In("candidates") && !v.In("reroute") {
		text = v.Use("candidates", "apply") + "\n" + text
	}
	return text
}

// Decide returns the statements of the granularity, which contain those of the
// choice; the guard's statements contain both.
func (v *view) Decide() string {
	if v.In("reroute") {
		return v.Use("reroute", "around")
	}
	return v.Unguarded()
}

// Unguarded returns the statements of Decide without the guard's.
func (v *view) Unguarded() string { return v.of(v.built(v.runs, granularity), "decide") }

// built returns the row's block of a kind for the architecture.
func (v *view) built(r Row, k kind) *block { return v.arch.lookup(k, r.block(k).Name) }

func (v *view) of(b *block, text string) string {
	if !b.defines(text) {
		v.err = cmp.Or(v.err, fmt.Errorf("%s: %v has no {{define %q}}", b.file.name, b, text))
		return ""
	}
	return strings.TrimSpace(v.execute(b, text))
}

// layOut indents a program by its brackets. It removes artefacts of templates: repeated blank
// lines, blank lines next to braces, and line breaks before else.
func layOut(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimSpace(line)
		last := len(lines) - 1
		switch {
		case line == "" && (last < 0 || lines[last] == "" || strings.HasSuffix(lines[last], "{") || strings.HasSuffix(lines[last], "else")):
		case strings.HasPrefix(line, "}") && last >= 0 && lines[last] == "":
			lines[last] = line
		case last >= 0 && strings.HasSuffix(lines[last], "} else"):
			lines[last] += " " + line
		default:
			lines = append(lines, line)
		}
	}
	var b strings.Builder
	depth := 0
	for _, line := range lines {
		opened, closed := brackets(line)
		if line != "" {
			b.WriteString(strings.Repeat("    ", max(0, depth-(len(line)-len(strings.TrimLeft(line, "})"))))))
			b.WriteString(line)
		}
		b.WriteByte('\n')
		depth += opened - closed
	}
	return b.String()
}

// brackets counts the brackets of a line outside its comment.
func brackets(line string) (opened, closed int) {
	code, _, _ := strings.Cut(line, "//")
	for _, r := range code {
		switch r {
		case '{', '(':
			opened++
		case '}', ')':
			closed++
		}
	}
	return opened, closed
}
