package syntax

import (
	"errors"
	"io/fs"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"
)

// TestMessages compares what Errors.Print shows of main.p4 in each archive.
func TestMessages(t *testing.T) {
	archives(t, "messages", func(t *testing.T, a *txtar.Archive) {
		_, errs := Parse(contents(a), "main.p4", Options{})
		var b strings.Builder
		if err := errs.Print(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, a, "messages", b.String())
	})
}

func parseText(text string, opts Options) (*File, Errors) {
	return Parse(fstest.MapFS{"main.p4": {Data: []byte(text)}}, "main.p4", opts)
}

func mustParse(t testing.TB, text string) *File {
	t.Helper()
	file, errs := parseText(text, Options{})
	if file == nil {
		t.Fatal(errs)
	}
	return file
}

func TestMissingFile(t *testing.T) {
	for _, name := range []string{"none.p4", "../up.p4", "/absolute.p4", ""} {
		file, errs := Parse(fstest.MapFS{}, name, Options{})
		if file != nil || len(errs) != 1 || !strings.HasPrefix(errs.Error(), "reading "+name+": ") {
			t.Errorf("%q: %v", name, errs)
		}
	}
}

// brokenFS fails to read one file although it exists.
type brokenFS struct{ fstest.MapFS }

var errBroken = errors.New("disk on fire")

func (b brokenFS) ReadFile(name string) ([]byte, error) {
	if name == "broken.h" {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errBroken}
	}
	return b.MapFS.ReadFile(name)
}

// TestUnreadableInclude: if a file exists but cannot be read, the search ends.
func TestUnreadableInclude(t *testing.T) {
	files := fstest.MapFS{"main.p4": {Data: []byte("#include \"broken.h\"\n")}, "dir/broken.h": {Data: nil}}
	_, errs := Parse(brokenFS{files}, "main.p4", Options{IncludeDirs: []string{"dir"}})
	if !strings.Contains(errs.Error(), errBroken.Error()) {
		t.Errorf("got %v", errs)
	}
}

func TestShow(t *testing.T) {
	opts := Options{Show: func(name string) string { return "/there/" + name }}
	file, errs := parseText("const string a = __FILE__;\n", opts)
	if file == nil || file.Name != "/there/main.p4" {
		t.Fatal(file, errs)
	}
	if got := String(file.Decls[0].(*ConstDecl).Value); got != `"/there/main.p4"` {
		t.Errorf("__FILE__ is %s", got)
	}
	_, errs = parseText("const int a = ;\n", opts)
	if got := errs.Error(); !strings.HasPrefix(got, "/there/main.p4:1:15: ") {
		t.Errorf("error is %s", got)
	}
}

func TestDefines(t *testing.T) {
	text := "const int a = A; const int b = B; const int c = F(3);"
	file, errs := parseText(text, Options{Defines: []string{"A", "B=x + 2", "F(n)=n * n", "C="}})
	if file == nil {
		t.Fatal(errs)
	}
	for i, want := range []string{"1", "x + 2", "3 * 3"} {
		if got := String(file.Decls[i].(*ConstDecl).Value); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, bad := range []string{"", "=1", "3=4", "F(=1", "defined"} {
		if file, errs := parseText("", Options{Defines: []string{bad}}); file != nil || errs[0].Pos.File() != "command line" {
			t.Errorf("define %q: %v", bad, errs)
		}
	}
}

// TestPositions checks where nodes stand: macros at their use, their
// arguments where they are written, declarations behind their annotations.
func TestPositions(t *testing.T) {
	text := `#define TWO 1 + 1
#define F(x) (x)
const int a = TWO
  * F(b);
@name("x")
struct S { @y bit<8> f; }
#line 70 "other.p4"
const int c = 1;
`
	file := mustParse(t, text)
	value := file.Decls[0].(*ConstDecl).Value.(*BinaryExpr)
	product := value.Y.(*BinaryExpr)
	field := file.Decls[1].(*StructDecl).Fields[0]
	for _, c := range []struct {
		node Node
		want string
	}{
		{value, "main.p4:3:15"},
		{product.Y, "main.p4:4:5"},
		{Unparen(product.Y), "main.p4:4:7"},
		{file.Decls[1], "main.p4:6:1"},
		{field, "main.p4:6:15"},
		{field.Annotations[0], "main.p4:6:12"},
		{field.Name, "main.p4:6:22"},
		{file.Decls[2], "other.p4:70:1"},
	} {
		if got := c.node.Pos().String(); got != c.want {
			t.Errorf("%s stands at %s, want %s", String(c.node), got, c.want)
		}
	}
	if got := file.Decls[2].Pos().sourceLine(); got != "const int c = 1;" {
		t.Errorf("line of the renamed declaration: %q", got)
	}
}

func TestUnknownPos(t *testing.T) {
	var p Pos
	if p.IsKnown() || p.File() != "" || p.String() != "-" || p.sourceLine() != "" || p.includedFrom().IsKnown() {
		t.Error("the zero Pos points somewhere")
	}
}

// TestLiterals checks the values of literals.
func TestLiterals(t *testing.T) {
	for _, c := range []struct {
		text   string
		value  string
		width  int
		signed bool
	}{
		{"0", "0", 0, false},
		{"1_000", "1000", 0, false},
		{"010", "10", 0, false},
		{"0x1F", "31", 0, false},
		{"0XaB_c", "2748", 0, false},
		{"0b101", "5", 0, false},
		{"0B1", "1", 0, false},
		{"0o17", "15", 0, false},
		{"0d19", "19", 0, false},
		{"8w255", "255", 8, false},
		{"8w256", "256", 8, false},
		{"4s0b1111", "15", 4, true},
		{"0w0", "0", 0, false},
		{"128w0xffffffffffffffffffffffffffffffff", "340282366920938463463374607431768211455", 128, false},
		{"123456789012345678901234567890", "123456789012345678901234567890", 0, false},
	} {
		x, ok := mustParse(t, "const int a = "+c.text+";").Decls[0].(*ConstDecl).Value.(*IntLit)
		if !ok || x.Value.String() != c.value || x.Width != c.width || x.Signed != c.signed || x.Text != c.text {
			t.Errorf("%s: %+v", c.text, x)
		}
	}
}

func TestStrings(t *testing.T) {
	for lit, want := range map[string]string{
		`""`:           ``,
		`"a b"`:        `a b`,
		`"\""`:         `"`,
		`"\\"`:         `\`,
		`"\\\""`:       `\"`,
		`"\n\x"`:       `\n\x`,
		`"\\n"`:        `\n`,
		"\"a\\\nb\"":   `ab`,
		"\"a\\\r\nb\"": `ab`,
		"\"a\nb\"":     "a\nb",
	} {
		value := mustParse(t, "const string a = "+lit+";").Decls[0].(*ConstDecl).Value.(*StringLit).Value
		if value != want {
			t.Errorf("%s is %q, want %q", lit, value, want)
		}
		if again := unquote(quote(value)); again != value {
			t.Errorf("%q quoted and unquoted is %q", value, again)
		}
	}
}

// TestTreesKeepTheirTokens checks that an annotation keeps its tokens when later
// programs reuse the buffer in which it was read.
func TestTreesKeepTheirTokens(t *testing.T) {
	first := mustParse(t, "@a(one two three) const bit<8> c = 1;")
	for range 100 {
		mustParse(t, "@b("+strings.Repeat("other ", 1000)+") const bit<8> d = 2;")
	}
	var got []string
	for _, tok := range first.Decls[0].(*ConstDecl).Annotations[0].Tokens {
		got = append(got, tok.Text)
	}
	if want := []string{"one", "two", "three"}; !slices.Equal(got, want) {
		t.Errorf("the annotation has %q, want %q", got, want)
	}
}

// TestAnnotations checks the tokens and expressions that a tree keeps of an
// annotation.
func TestAnnotations(t *testing.T) {
	text := `@a @b() @c("x\"", 3) @d(no list) @e[1] @f[k = 2] const int x = 1;`
	as := mustParse(t, text).Decls[0].(*ConstDecl).Annotations
	if as.Get("nothing") != nil || as.Get("b") != as[1] {
		t.Error("Get finds the wrong annotation")
	}
	for i, want := range []struct {
		kind                  AnnotationKind
		tokens, exprs, fields int
	}{
		{annotationPlain, 0, 0, 0}, {AnnotationBody, 0, 0, 0}, {AnnotationBody, 3, 2, 0},
		{AnnotationBody, 2, 0, 0}, {AnnotationExprs, 0, 1, 0}, {AnnotationKeyValues, 0, 0, 1},
	} {
		a := as[i]
		if a.Kind != want.kind || len(a.Tokens) != want.tokens || len(a.Exprs) != want.exprs || len(a.Fields) != want.fields {
			t.Errorf("%s: kind %d, %d tokens, %d expressions, %d fields", String(a), a.Kind, len(a.Tokens), len(a.Exprs), len(a.Fields))
		}
	}
	tok := as[2].Tokens[0]
	if !tok.IsString() || tok.Text != `"x\""` || !as[2].Tokens[2].IsInt() || !as[3].Tokens[0].IsName() {
		t.Errorf("tokens are %v", as[2].Tokens)
	}
}

// TestString checks the one-line form of nodes, made ones among them.
func TestString(t *testing.T) {
	file := mustParse(t, `control c() { action a() { if (x == 1) { y = 2; } else z = {f = 1}; } apply {} }`)
	a := file.Decls[0].(*ControlDecl).Locals[0].(*ActionDecl)
	if got, want := String(a.Body.Stmts[0]), "if (x == 1) { y = 2; } else z = {f = 1};"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	one, two := &Name{Value: "a"}, &IntLit{Value: big.NewInt(5), Width: 8}
	sum := &BinaryExpr{Op: Add, X: one, Y: two}
	for _, c := range []struct {
		node Node
		want string
	}{
		{&BinaryExpr{Op: Mul, X: sum, Y: sum}, "(a + 8w5) * (a + 8w5)"},
		{&BinaryExpr{Op: Sub, X: sum, Y: sum}, "a + 8w5 - (a + 8w5)"},
		{&UnaryExpr{Op: Neg, X: sum}, "-(a + 8w5)"},
		{&SelectorExpr{X: &CastExpr{Type: one, X: one}, Sel: one}, "((a)a).a"},
		{&CondExpr{Cond: &CondExpr{Cond: one, Then: one, Else: two}, Then: one, Else: &CondExpr{Cond: one, Then: one, Else: two}},
			"a ? a : 8w5 ? a : (a ? a : 8w5)"},
		{&BaseType{Kind: BitKind, Size: &BinaryExpr{Op: Shr, X: two, Y: one}}, "bit<(8w5 >> a)>"},
		{(*Name)(nil), ""},
		{nil, ""},
	} {
		if got := String(c.node); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// TestInspect counts nodes, without the nodes below one for which f returns false.
func TestInspect(t *testing.T) {
	file := mustParse(t, `@x[1 + 2] control c(in bit<8> p) { table t { key = { p: exact; } actions = { a(1 + 1); } } apply { if (p == 1) { p = 2; } } }`)
	count := func(down func(Node) bool) (ints, names int) {
		Inspect(file.Decls[0], func(n Node) bool {
			switch n.(type) {
			case *IntLit:
				ints++
			case *Name:
				names++
			}
			return down(n)
		})
		return ints, names
	}
	if ints, names := count(func(Node) bool { return true }); ints != 7 || names != 9 {
		t.Errorf("%d integers, %d names", ints, names)
	}
	notDown := func(n Node) bool { _, binary := n.(*BinaryExpr); return !binary }
	if ints, names := count(notDown); ints != 2 || names != 8 {
		t.Errorf("%d integers, %d names without those of binary expressions", ints, names)
	}
}

// TestInspectAll compares Inspect with a walk that knows nothing of the nodes
// but their fields.
func TestInspectAll(t *testing.T) {
	archives(t, "parse", func(t *testing.T, a *txtar.Archive) {
		for _, name := range programs(a) {
			file, errs := Parse(contents(a), name, Options{})
			if file == nil {
				t.Fatal(errs)
			}
			for _, d := range file.Decls {
				want, got := make(map[Node]int), make(map[Node]int)
				reach(reflect.ValueOf(d), want)
				Inspect(d, func(n Node) bool { got[n]++; return true })
				for n := range want {
					if want[n] != got[n] {
						t.Errorf("%s: Inspect calls %d times for %T %s", n.Pos(), got[n], n, String(n))
					}
				}
				if len(got) > len(want) {
					t.Errorf("%s: Inspect finds too much in %s", d.Pos(), String(d))
				}
			}
		}
	})
}

// reach counts the nodes that fields lead to.
func reach(v reflect.Value, found map[Node]int) {
	switch v.Kind() {
	case reflect.Pointer:
		if n, ok := v.Interface().(Node); ok && !v.IsNil() {
			found[n]++
			reach(v.Elem(), found)
		}
	case reflect.Interface:
		reach(v.Elem(), found)
	case reflect.Slice:
		for i := range v.Len() {
			reach(v.Index(i), found)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				reach(v.Field(i), found)
			}
		}
	}
}

// TestClean checks order, suppression and the limit.
func TestClean(t *testing.T) {
	src := newSource("a", strings.Repeat("x\n", 100), Pos{})
	at := func(line, col uint32) Pos { return Pos{src: src, line: line, col: col} }
	inc := Pos{src: newSource("inc", "y\n", at(3, 1)), line: 1, col: 1}
	var es Errors
	es.add(at(5, 1), "fifth")
	es.add(at(3, 9), "third")
	es.add(at(3, 2), "third again")
	es.warn(at(5, 2), "warning where an error is")
	es.warn(at(4, 1), "warning %d", 1)
	es.warn(at(4, 1), "warning %d", 1)
	es.warn(at(4, 1), "warning %d", 2)
	es.add(inc, "included")
	es.add(Pos{}, "nowhere")
	want := "nowhere\ninc:1:1: included\na:3:9: third\na:4:1: warning: warning 1\na:4:1: warning: warning 2\na:5:1: fifth"
	if got := es.Clean().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range uint32(50) {
		es.add(at(line+20, 1), "more")
	}
	if clean := es.Clean(); len(clean) != maxErrors+3 || clean[len(clean)-1].Msg != "too many errors" {
		t.Errorf("%d errors are left, the last is %v", len(clean), clean[len(clean)-1])
	}
	// Omitted diagnostics are counted, also if a list consists of lists that omitted
	// some.
	var many Errors
	for line := range uint32(2*maxWarnings + 100) {
		many.warn(at(line+1, 1), "unused")
	}
	for _, merged := range []Errors{many.Clean().Clean(), slices.Concat(many[:maxWarnings+100].Clean(), many[maxWarnings+100:]).Clean()} {
		if last := merged[len(merged)-1]; len(merged) != maxWarnings+1 || last.Msg != "300 more, left out" || !last.Warning {
			t.Errorf("%d warnings are left, the last is %v", len(merged), last)
		}
	}
	if warnings := (Errors{{Warning: true}}); warnings.Err() != nil || es.Err() == nil {
		t.Error("Err is wrong about what stops a compilation")
	}
}

// Strings end up in P4Info, and its texts must be UTF-8.
func TestStringsAreUTF8(t *testing.T) {
	for text, ok := range map[string]bool{"@n(\"gr\u00fcn\") const bit x = 1;": true, "@n(\"gr\xfcn\") const bit x = 1;": false} {
		fsys := fstest.MapFS{"f.p4": {Data: []byte(text)}}
		toks, errs := Scan(fsys, "f.p4", Options{})
		if (toks != nil) != ok || (errs.Err() == nil) != ok {
			t.Errorf("%q: %d tokens, %v", text, len(toks), errs)
		}
	}
}
