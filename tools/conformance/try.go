package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// A program is one file of the suite.
type program struct {
	name     string // path below its folder, without .p4
	path     string
	bad      bool // from p4_16_errors
	v1model  bool // includes v1model.p4, and is not an include file itself
	outcomes map[string]Outcome
}

// try runs one program through the categories that apply to it.
func (s *Suite) try(ctx context.Context, p *program) {
	p.outcomes = map[string]Outcome{}
	if p.bad {
		if slices.Contains(s.want, "errors") {
			p.outcomes["errors"] = s.judge(p, s.check(ctx, p))
		}
		return
	}
	base := filepath.Join(s.temp, strings.ReplaceAll(p.name, "/", "_"))
	if !p.v1model {
		if slices.Contains(s.want, "samples") {
			p.outcomes["samples"] = survived(s.check(ctx, p))
		}
		return
	}
	first := s.p4lb(ctx, "compile", p.path, "-o", base+".json", "--p4info", base+".p4info.txtpb")
	p.outcomes["samples"] = survived(first)
	p.outcomes["v1model"] = compiled(first)
	if first.code != done && slices.Contains(s.want, "p4info") {
		// P4Info is generated even for programs that BMv2 cannot express.
		s.p4lb(ctx, "compile", p.path, "--p4info", base+".p4info.txtpb")
	}
	p.outcomes["p4info"] = s.compareP4Info(p, base+".p4info.txtpb")
	if slices.Contains(s.want, "stf") {
		p.outcomes["stf"] = s.testPackets(ctx, p, base+".json")
	}
}

// check compiles a program only to check it. Include files of architectures other
// than v1model come from the checkout.
func (s *Suite) check(ctx context.Context, p *program) finished {
	if p.v1model {
		return s.p4lb(ctx, "compile", p.path)
	}
	return s.p4lb(ctx, "compile", "-I", filepath.Join(s.Dir, "p4include"), p.path)
}

// The exit codes of p4lb: the program was compiled, or it was rejected.
const (
	done    = 0
	refused = 1
)

// A finished is the result of a process.
type finished struct {
	code   int // -1 if the process crashed or hung
	reason string
	errors []message
	output string
}

// A message is a diagnostic as p4lb writes it with --log-format json.
type message struct {
	Level, Msg, File string
	Line             int
	Class            syntax.Class
}

// p4lb runs the binary with JSON messages.
func (s *Suite) p4lb(ctx context.Context, args ...string) finished {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, s.P4LB, append([]string{"--log-format", "json"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return finished{code: -1, reason: fmt.Sprintf("still running after %v", s.Timeout)}
	case err != nil && !errors.As(err, &exit):
		return finished{code: -1, reason: err.Error()}
	}
	end := finished{code: cmd.ProcessState.ExitCode(), output: out.String()}
	for line := range strings.Lines(errs.String()) {
		var m message
		if json.Unmarshal([]byte(line), &m) != nil {
			end.code, end.reason = -1, "crash: "+strings.TrimSpace(line)
			break
		}
		if m.Level == "ERROR" {
			end.errors = append(end.errors, m)
		}
	}
	return end
}

// reasonOf returns the first message of a failed process.
func (f finished) reasonOf() string {
	switch {
	case f.reason != "":
		return f.reason
	case len(f.errors) > 0:
		m := f.errors[0]
		if m.Line == 0 {
			return m.Msg
		}
		return fmt.Sprintf("%s:%d: %s", filepath.Base(m.File), m.Line, m.Msg)
	case f.output != "":
		return strings.Join(strings.Fields(f.output), " ")
	}
	return fmt.Sprintf("exit code %d, no message", f.code)
}

func survived(f finished) Outcome {
	if f.code < 0 || f.code > refused {
		return Outcome{status: failed, Reason: f.reasonOf()}
	}
	return Outcome{status: passed}
}

func compiled(f finished) Outcome {
	library := len(f.errors) == 1 && f.errors[0].Class == syntax.NoMain
	switch {
	case f.code == done, library: // a library only needs to be checked
		return Outcome{status: passed}
	case len(f.errors) > 0 && !slices.ContainsFunc(f.errors, isError):
		return Outcome{status: notSupported, Reason: f.reasonOf()}
	}
	return Outcome{status: failed, Reason: f.reasonOf()}
}

// isError reports whether m is an error other than "not supported" with a position.
func isError(m message) bool { return m.Line == 0 || m.Class != syntax.Unsupported }

// compareP4Info compares the generated P4Info with the suite's.
func (s *Suite) compareP4Info(p *program, got string) Outcome {
	want := filepath.Join(s.Dir, "testdata", "p4_16_samples_outputs", filepath.FromSlash(p.name)+".p4.p4info.txtpb")
	if _, err := os.Stat(want); err != nil {
		return Outcome{}
	}
	if _, err := os.Stat(got); err != nil {
		return Outcome{status: failed, Reason: "not compiled"}
	}
	var a, b configv1.P4Info
	for _, f := range []struct {
		name string
		msg  proto.Message
	}{{want, &a}, {got, &b}} {
		text, err := os.ReadFile(f.name)
		if err == nil {
			err = prototext.Unmarshal(text, f.msg)
		}
		if err != nil {
			return Outcome{status: failed, Reason: err.Error()}
		}
	}
	if proto.Equal(&a, &b) {
		return Outcome{status: passed}
	}
	return Outcome{status: failed, Reason: firstDifference(&a, &b)}
}

// firstDifference returns a line in which the texts of two messages differ.
func firstDifference(want, got proto.Message) string {
	w := strings.Split(prototext.Format(want), "\n")
	g := strings.Split(prototext.Format(got), "\n")
	for i := range min(len(w), len(g)) {
		a, b := strings.Fields(w[i]), strings.Fields(g[i])
		if !slices.Equal(a, b) {
			return fmt.Sprintf("want %s, got %s", strings.Join(a, " "), strings.Join(b, " "))
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}

// testPackets runs the packet test of a program, if it has one.
func (s *Suite) testPackets(ctx context.Context, p *program, compiled string) Outcome {
	cases := strings.TrimSuffix(p.path, ".p4") + ".stf"
	if _, err := os.Stat(cases); err != nil {
		return Outcome{}
	}
	if s.JSONDir != "" {
		compiled = filepath.Join(s.JSONDir, filepath.FromSlash(p.name)+".json")
	}
	switch _, err := os.Stat(compiled); {
	case err != nil && s.JSONDir != "":
		return Outcome{} // p4c has not compiled it
	case err != nil:
		return Outcome{status: failed, Reason: "not compiled"}
	}
	f := s.p4lb(ctx, "test", compiled, cases)
	if f.code == done {
		return Outcome{status: passed}
	}
	return Outcome{status: failed, Reason: f.reasonOf()}
}

// judge checks the errors of a program that must be rejected. If the suite lists
// error lines, p4lb must report at least one of them. If it lists none, because the
// error concerns the whole program, any error is enough.
func (s *Suite) judge(p *program, f finished) Outcome {
	if f.code != refused {
		reason := "accepted"
		if f.code != done {
			reason = f.reasonOf()
		}
		return Outcome{status: failed, Reason: reason}
	}
	text, err := os.ReadFile(filepath.Join(s.Dir, "testdata", "p4_16_errors_outputs", filepath.Base(p.path)+"-stderr"))
	if err != nil {
		return Outcome{}
	}
	want := errorLines(string(text))
	var got []string
	for _, m := range f.errors {
		if m.Line > 0 {
			got = append(got, filepath.Base(m.File)+":"+strconv.Itoa(m.Line))
		}
	}
	if len(want) == 0 && len(got) > 0 || slices.ContainsFunc(got, func(at string) bool { return slices.Contains(want, at) }) {
		return Outcome{status: passed}
	}
	return Outcome{status: failed, Reason: fmt.Sprintf("expected at %s, got %s (%s)",
		strings.Join(want, " "), strings.Join(got, " "), f.reasonOf())}
}

// The format of p4c's messages: "name.p4(12): … error: …" starts an error, and its
// parser omits the word error for syntax errors. A following "name.p4(34)" is
// another position of the same error. A warning starts like an error. A summary
// starts with "[".
var (
	placeRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([^\s(]+)\((\d+)\)`)
	})
	errorRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[^\s(]+\(\d+\):.*(?:error:|syntax error)`)
	})
	warningRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[^\s(]+\(\d+\):.*warning:|^\[`)
	})
)

// errorLines returns every FILE:LINE in the errors of p4c.
func errorLines(text string) []string {
	var places []string
	inError := false
	for line := range strings.Lines(text) {
		switch {
		case errorRE().MatchString(line):
			inError = true
		case warningRE().MatchString(line):
			inError = false
		}
		if m := placeRE().FindStringSubmatch(line); m != nil && inError {
			places = append(places, m[1]+":"+m[2])
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

var includeRE = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]+)[">]`)
})

// includesV1model reports whether the file includes v1model.p4, directly or through
// a file in the same folder.
func (s *Suite) includesV1model(path string) bool {
	if known, ok := s.v1model[path]; ok {
		return known
	}
	s.v1model[path] = false // stops at files that include themselves
	text, _ := os.ReadFile(path)
	for _, m := range includeRE().FindAllSubmatch(text, -1) {
		name := string(m[1])
		if filepath.Base(name) == "v1model.p4" || s.includesV1model(filepath.Join(filepath.Dir(path), name)) {
			s.v1model[path] = true
			break
		}
	}
	return s.v1model[path]
}
