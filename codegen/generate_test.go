package codegen_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/p4/format"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// maxLines bounds the longest program of the catalogue.
const maxLines = 920

// generate returns the program of a row in canonical form.
func generate(t *testing.T, row codegen.Row, p codegen.Params) (*codegen.Program, string) {
	t.Helper()
	program, err := codegen.Generate(row, p)
	if err != nil {
		t.Fatal(err)
	}
	return program, reformat(t, program)
}

// formatted holds canonical forms by the text as generated: many variants of a
// row have the same.
var formatted sync.Map

// reformat returns the text of a program in canonical form.
func reformat(t *testing.T, program *codegen.Program) string {
	t.Helper()
	if text, ok := formatted.Load(program.P4); ok {
		return text.(string)
	}
	text, err := format.Format([]byte(program.P4), program.Name+".p4")
	if err != nil {
		t.Fatal(err)
	}
	formatted.Store(program.P4, string(text))
	return string(text)
}

// compile compiles a program and fails on warnings.
func compile(t *testing.T, name, text string) *bmv2.Config {
	t.Helper()
	p, err := p4.CompileText("p.p4", []byte(text), p4.Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, w := range p.Warnings {
		t.Errorf("%s: %v", name, w)
	}
	return p.Config
}

// leftToPlainRun skips a test of one goroutine in short mode, which is for the
// race detector.
func leftToPlainRun(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it has one goroutine: the race detector has nothing to see")
	}
}

// variants are ways of generating that change the text.
func variants() map[string]codegen.Params {
	list := map[string]codegen.Params{}
	for _, n := range []int{2, 4, 16} {
		list[fmt.Sprint(n, " paths")] = codegen.Params{Ports: n}
	}
	for _, role := range codegen.Roles[1:] {
		list[role] = codegen.Params{Role: role}
	}
	list["shared"] = codegen.Params{StatePath: "shared"}
	list["ipv6"] = codegen.Params{IPv6: true}
	list["ipv6 spine"] = codegen.Params{IPv6: true, Role: "spine"}
	return list
}

// TestEveryRow compiles the whole catalogue in all variants and checks the style of
// each program.
func TestEveryRow(t *testing.T) {
	for variant, params := range variants() {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			for i, row := range codegen.Rows() {
				if testing.Short() && i%6 > 0 {
					continue
				}
				program, text := generate(t, row, params)
				config := compile(t, row.Name, text)
				checkManifest(t, program.Manifest, config)
				checkText(t, row.Name, text)
				if n := strings.Count(text, "\n"); n > maxLines {
					t.Errorf("%s has %d lines, more than %d", row.Name, n, maxLines)
				}
			}
		})
	}
}

// checkManifest checks that the manifest describes every register, table and header of
// the program that needs a description.
func checkManifest(t *testing.T, m manifest.Manifest, config *bmv2.Config) {
	t.Helper()
	type array struct {
		Name        string
		Size, Width int
	}
	var have, want []array
	for _, r := range m.Registers {
		have = append(have, array{r.Name, r.Size, r.Width})
		if r.Meaning == "" || r.Index == "" || r.Writer == "" {
			t.Errorf("%s: register %s is not explained", m.Scheme, r.Name)
		}
	}
	for _, r := range config.RegisterArrays {
		want = append(want, array{r.Name, r.Size, r.Bitwidth})
	}
	byName := func(a, b array) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(have, byName)
	slices.SortFunc(want, byName)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("%s: registers in the program (-) and the manifest (+):\n%s", m.Scheme, diff)
	}
	checkTables(t, m, config)
	for _, h := range m.Headers {
		if len(h.Fields) == 0 || h.Meaning == "" {
			t.Errorf("%s: header %s is not explained", m.Scheme, h.Name)
		}
		if h.Kind == manifest.PauseHeader {
			continue // IEEE 802.1Qbb explains its fields
		}
		for _, f := range h.Fields {
			if f.Meaning == "" || f.Width == 0 {
				t.Errorf("%s: field %s of header %s is not explained", m.Scheme, f.Name, h.Name)
			}
		}
	}
}

func checkTables(t *testing.T, m manifest.Manifest, config *bmv2.Config) {
	t.Helper()
	var have, want []string
	for _, table := range m.Tables {
		have = append(have, table.Name)
		if table.Meaning == "" || len(table.Actions) == 0 || slices.ContainsFunc(table.Actions, func(a manifest.Action) bool { return a.Name == "" }) {
			t.Errorf("%s: table %s is not explained: %v", m.Scheme, table.Name, table.Actions)
		}
	}
	for _, pipeline := range config.Pipelines {
		for _, table := range pipeline.Tables {
			if !strings.HasPrefix(table.Name, "tbl_") { // calls of actions
				want = append(want, table.Name)
			}
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("%s: tables in the program (-) and the manifest (+):\n%s", m.Scheme, diff)
	}
}

var (
	comment  = regexp.MustCompile(`//.*`)
	word     = regexp.MustCompile(`[A-Za-z_]\w*`)
	declared = regexp.MustCompile(`(?m)^(?:const \S+ (\w+) =|typedef .* (\w+);|header (\w+) \{|register<.*>\(\w+\) (\w+);|    (?:action|table|state) (\w+)\b)`)
	metadata = regexp.MustCompile(`(?s)struct metadata_t \{(.*?)\n\}`)
	register = regexp.MustCompile(`(?m)^register<.*> *\(\w+\) (\w+);`)
	member   = regexp.MustCompile(`(?m)^    \S+ +(\w+);`)
)

// checkText reports lines that are too long, leftovers of templates, and unused
// declarations.
func checkText(t *testing.T, name, text string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		code, about, found := strings.Cut(line, "// ")
		if found && strings.TrimSpace(code) == "" && len(line) > 90 {
			t.Errorf("%s:%d: a comment of %d columns: %s", name, i+1, len(line), about)
		}
		if line == "" && i > 0 && (lines[i-1] == "" || strings.HasSuffix(lines[i-1], "{")) {
			t.Errorf("%s:%d: a blank line too many", name, i+1)
		}
	}
	code := comment.ReplaceAllString(text, "")
	uses := map[string]int{}
	for _, w := range word.FindAllString(code, -1) {
		uses[w]++
	}
	for _, r := range register.FindAllStringSubmatch(code, -1) {
		if !strings.Contains(code, r[1]+".read(") && !strings.Contains(code, r[1]+".write(") {
			t.Errorf("%s: register %s is not used", name, r[1])
		}
	}
	list := declared.FindAllStringSubmatch(code, -1)
	list = append(list, member.FindAllStringSubmatch(metadata.FindStringSubmatch(code)[1], -1)...)
	for _, d := range list {
		for _, what := range d[1:] {
			if what != "" && what != "start" && uses[what] < 2 {
				t.Errorf("%s: %s is declared and not used", name, what)
			}
		}
	}
}

// TestDeterministic generates twice, because the order of maps is random.
func TestDeterministic(t *testing.T) {
	leftToPlainRun(t)
	for _, row := range codegen.Rows() {
		a, err := codegen.Generate(row, codegen.Params{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := codegen.Generate(row, codegen.Params{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s differs from run to run:\n%s", row.Name, diff)
		}
	}
}

// TestGuardOnEveryRow adds RLB to all rows, because a guard must not depend on the
// row.
func TestGuardOnEveryRow(t *testing.T) {
	leftToPlainRun(t)
	for _, name := range codegen.Names() {
		if strings.Contains(name, "+") {
			continue
		}
		for _, guard := range []string{"+rlb", "+rlb-star"} {
			row, err := codegen.Lookup(name + guard)
			if err != nil {
				t.Error(err)
				continue
			}
			_, text := generate(t, row, codegen.Params{})
			compile(t, row.Name, text)
			checkText(t, row.Name, text)
		}
	}
}

// TestParameters generates with each parameter at both its bounds, or with each
// of its words: that either compiles or is refused.
func TestParameters(t *testing.T) {
	leftToPlainRun(t)
	seen := map[string]bool{}
	for _, row := range codegen.Rows() {
		for _, p := range row.Parameters() {
			for _, value := range append(slices.Clone(p.Words), p.Min, p.Max) {
				name := p.Name + "=" + value
				if value == "" || seen[name] {
					continue
				}
				params := codegen.Params{Set: map[string]string{p.Name: value}}
				program, err := codegen.Generate(row, params)
				if err != nil {
					t.Logf("%v", err)
					continue
				}
				seen[name] = true
				text := reformat(t, program)
				compile(t, row.Name+" "+name, text)
				checkText(t, row.Name+" "+name, text)
			}
		}
	}
}

// TestCoefficients generates programs for polynomials with their own data ranges, and
// checks that one whose sum exceeds every accumulator is refused.
func TestCoefficients(t *testing.T) {
	leftToPlainRun(t)
	for degree := 1; degree <= fitting.MaxDegree; degree++ {
		row, err := codegen.Compose("packet", "fitted", "grid", "none")
		if err != nil {
			t.Fatal(err)
		}
		poly := fitting.Poly{Degree: degree, Scale: 1000, L: fitting.Range{Min: 20, Max: 200}, T: fitting.Range{Min: 50, Max: 9000}}
		for i := range fitting.Terms(degree) {
			poly.Coeff = append(poly.Coeff, int64(1000-i*7))
		}
		params := codegen.Params{Coeffs: &poly, Set: map[string]string{"degree": fmt.Sprint(degree)}}
		_, text := generate(t, row, params)
		compile(t, fmt.Sprint("degree ", degree), text)
		checkText(t, fmt.Sprint("degree ", degree), text)

		// 63 bits, and 8 for each degree, exceed the accumulator from degree 8
		// on; before that it is the weights that exceed their width.
		poly.Coeff[0] = math.MaxInt64
		want := "more than the 4294967295 of 32 bits"
		if degree >= 8 {
			want = "more than the 128 of the widest accumulator"
		}
		if _, err := codegen.Generate(row, params); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("degree %d: got %v, want %q", degree, err, want)
		}
	}
}

// TestErratum188: the two forms of Eq. 13 differ in the coefficient that the paper
// misprints, in the resulting maximum, and in the comment.
func TestErratum188(t *testing.T) {
	row, err := codegen.Lookup("qall-poly3")
	if err != nil {
		t.Fatal(err)
	}
	_, right := generate(t, row, codegen.Params{})
	_, printed := generate(t, row, codegen.Params{Printed: true})
	for text, want := range map[string][]string{
		right:   {" + 1887 * l * t ", "C_MAX = 34;", "The paper prints 188 for l*t, but its own Eq. 10 gives 1887"},
		printed: {" + 188 * l * t ", "C_MAX = 27;", "The paper prints 188 for l*t; its own Eq. 10 gives 1887"},
	} {
		for _, w := range want {
			if !strings.Contains(strings.ReplaceAll(text, "\n        // ", " "), w) {
				t.Errorf("no %q in the program", w)
			}
		}
	}
}

// TestTitleFollowsValues: a program states its own degree, and the catalogue the
// row's.
func TestTitleFollowsValues(t *testing.T) {
	row, err := codegen.Parse("qall-poly3")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(row.Title, "a polynomial of degree 3 in") {
		t.Error(row.Title)
	}
	p, text := generate(t, row, codegen.Params{Set: map[string]string{"degree": "5"}, Runtime: true})
	for _, said := range []string{p.Manifest.Title, text} {
		if !strings.Contains(said, "a polynomial of degree 5 in") || strings.Contains(said, "degree 3") {
			t.Errorf("degree 5 is called\n%s", said)
		}
	}
}
