package play

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
)

// clean fails the test if a program has errors.
func clean(t *testing.T, what string, s Source) {
	t.Helper()
	for _, m := range ask[Checked](t, "check", s).Messages {
		if !m.Warning {
			t.Errorf("%s: %s: %s:%d: %s", what, s.Name, m.File, m.Line, m.Text)
		}
	}
}

// TestCopiedBlocks starts from every block of the catalogue: the copy makes the program
// that the catalogue's block makes, but for names.
func TestCopiedBlocks(t *testing.T) {
	for _, b := range codegen.Standard().Blocks() {
		if b.Name == "none" {
			continue
		}
		start := ask[blockStart](t, "block", blockRequest{b.Kind, b.Name})
		g := ask[Generated](t, "generate", SchemeRequest{Name: start.Scheme, Files: start.Files})
		base := ask[Generated](t, "generate", SchemeRequest{Name: start.Base})
		if g.Failed != "" {
			t.Errorf("%s %s: %s", b.Kind, b.Name, g.Failed)
			continue
		}
		for _, arch := range []string{"tna", "t2na"} {
			original := generated(t, SchemeRequest{Name: start.Base, Arch: arch})
			if copied := generated(t, SchemeRequest{Name: start.Scheme, Arch: arch, Files: start.Files}); original == "yes" && copied != original {
				t.Errorf("%s %s for %s: %s, want %s", b.Kind, b.Name, arch, copied, original)
			}
		}
		if b.Name == "behaviour" || b.Name == "fitted" {
			continue // a copy may have weights of 0, which its choice avoids
		}
		if got, want := body(g.Files[0].Text), body(base.Files[0].Text); got != want {
			t.Errorf("%s %s: the program of the copy differs from the original: %s", b.Kind, b.Name, firstDifference(got, want))
		}
	}
}

// generated returns "yes", or the reason why a program cannot be generated.
func generated(t *testing.T, r SchemeRequest) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var a struct{ Error, Failed string }
	if err := json.Unmarshal(Call(t.Context(), "generate", text, nil), &a); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(cmp.Or(a.Error, a.Failed, "yes"), "my-", "")
}

// firstDifference returns the first lines that differ.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: %q, want %q", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// body is a program without its comments at the beginning.
func body(text string) string {
	_, rest, _ := strings.Cut(text, "#include")
	return strings.ReplaceAll(rest, "my-", "")
}

// TestBrokenBlock breaks a block: errors name its file and line, or the line of the
// program.
func TestBrokenBlock(t *testing.T) {
	start := ask[blockStart](t, "block", blockRequest{"signal", "queue"})
	request := func(from, to string) SchemeRequest {
		files := slices.Clone(start.Files)
		if !strings.Contains(files[0].Text, from) {
			t.Fatalf("%s has no %q", files[0].Name, from)
		}
		files[0].Text = strings.Replace(files[0].Text, from, to, 1)
		return SchemeRequest{Name: start.Scheme, Files: files}
	}
	bad := refused(t, "generate", request("kind: signal", "kind: sign"))
	if len(bad.Messages) != 1 || bad.Messages[0].File != start.Files[0].Name || bad.Messages[0].Line != 2 {
		t.Errorf("messages %+v, want one in line 2 of %s", bad.Messages, start.Files[0].Name)
	}
	g := ask[Generated](t, "generate", request(`{{.Use "depth" "cost"}}`, "bit<32> cost = nothing;"))
	if !strings.Contains(g.Failed, "nothing") {
		t.Errorf("failed %q", g.Failed)
	}
	c := ask[Checked](t, "check", Source{Name: g.Files[0].Name, Text: g.Files[0].Text})
	if len(c.Messages) == 0 || c.Messages[0].Line == 0 {
		t.Errorf("messages %+v", c.Messages)
	}
}

// TestOwnSchemes checks and runs the schemes of the examples.
func TestOwnSchemes(t *testing.T) {
	for _, s := range ask[Listing](t, "list", struct{}{}).Own {
		experiment := ""
		for _, f := range s.Files {
			switch {
			case strings.HasSuffix(f.Name, ".p4") && f.Name != "common.p4", isManifest(f.Name):
				clean(t, s.Name, Source{Name: f.Name, Text: f.Text, Files: s.Files})
			case f.Name == "experiment.yaml":
				experiment = f.Text
			}
		}
		experiment = strings.NewReplacer("duration: 300ms", "duration: 10ms", "seeds: 6", "seeds: 2").Replace(experiment)
		r := ask[RunResult](t, "run", RunRequest{YAML: experiment, Files: s.Files})
		if len(r.Table) < 3 {
			t.Errorf("%s: %v", s.Name, r.Table)
		}
		if testing.Short() {
			break
		}
	}
}

// TestAdopt runs a changed program of the catalogue in a network beside the original: a
// program that sends everything to one path uses one path.
func TestAdopt(t *testing.T) {
	request := SchemeRequest{Name: "rps"}
	g := ask[Generated](t, "generate", request)
	if !strings.Contains(g.Files[0].Text, "random(") {
		t.Fatal("the program of rps has no random number")
	}
	lines := strings.Split(g.Files[0].Text, "\n")
	for i, line := range lines {
		if strings.Contains(line, "random(meta.slot") {
			lines[i] = "meta.slot = 0;"
		}
	}
	a := ask[adoptedScheme](t, "adopt", adoptRequest{SchemeRequest: request, Text: strings.Join(lines, "\n")})
	text := strings.Replace(a.YAML, "metrics: [", "metrics: [paths-used, ", 1)
	r := ask[RunResult](t, "run", RunRequest{YAML: text, Files: a.Files})
	if len(r.Table) != 4 || !strings.Contains(strings.Join(r.Table[1], " "), "25.0") || !strings.Contains(strings.Join(r.Table[2], " "), "100") {
		t.Errorf("%v, want 25 %% of the paths for the changed program and 100 %% for rps", r.Table)
	}
}

// TestCompose composes a scheme without a row.
func TestCompose(t *testing.T) {
	d := ask[schemeDescription](t, "scheme", SchemeRequest{Compose: &Composition{"flowlet", "queue", "grid", "rlb"}})
	if d.Name != "flowlet-queue-grid+rlb" || d.Blocks != (Composition{"flowlet", "queue", "grid", "rlb"}) {
		t.Errorf("%+v", d)
	}
	g := ask[Generated](t, "generate", SchemeRequest{Name: d.Name})
	clean(t, d.Name, Source{Name: g.Files[0].Name, Text: g.Files[0].Text})
	if e := refused(t, "scheme", SchemeRequest{Compose: &Composition{"packet", "", "best-hop", ""}}); !strings.Contains(e.Message, "best-hop") {
		t.Errorf("%q", e.Message)
	}
}

// TestFirstManifest guesses the manifest of an example, and runs the program by it.
func TestFirstManifest(t *testing.T) {
	for _, e := range ask[Listing](t, "list", struct{}{}).Examples {
		m := ask[NamedText](t, "manifest", manifestRequest{Source{Name: e.Name + ".p4", Text: e.Text}})
		clean(t, e.Name, Source{Name: m.Name, Text: m.Text, Files: Files{{e.Name + ".p4", e.Text}}})
	}
}

// TestFiles refuses bad files.
func TestFiles(t *testing.T) {
	for _, c := range []struct {
		files Files
		want  string
	}{
		{Files{{"../x.p4", ""}}, "../x.p4"},
		{Files{{"/etc/passwd", ""}}, "/etc/passwd"},
		{Files{{"x.p4", ""}, {"x.p4", ""}}, "two files x.p4"},
		{Files{{"x.p4", strings.Repeat("x", maxTexts+1)}}, "bytes"},
		{make(Files, maxFiles+1), "at most 64"},
	} {
		if e := refused(t, "run", RunRequest{YAML: quickExperiment, Files: c.files}); !strings.Contains(e.Message, c.want) {
			t.Errorf("%q, want %q", e.Message, c.want)
		}
	}
	e := refused(t, "run", RunRequest{YAML: strings.Replace(quickExperiment, "schemes: [qall-poly3, ecmp]", "schemes: [ecmp]\nblocks: ../other", 1)})
	if !strings.Contains(e.Message, "../other") || e.Line == 0 {
		t.Errorf("%q in line %d", e.Message, e.Line)
	}
}
