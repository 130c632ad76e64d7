package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
)

// TestLabInterrupted interrupts a lab: the exit code reports it, finished runs
// are kept, and lab continues from there.
func TestLabInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	args := []string{"lab", "--scheme", "ecmp", "--vs", "drill", "--workload", "webserver", "--duration", "2ms",
		"--seeds", "2", "--cores", "1", "--engine", "native", "-o", dir}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out strings.Builder
	errs := &cancelling{word: "seed-1", cancel: cancel}
	if code := run(ctx, append(args, "-v"), nil, &out, errs); code != cli.ExitInterrupted {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	if !strings.Contains(errs.String(), "--resume continues") || !strings.HasSuffix(errs.String(), "error: interrupted\n") {
		t.Errorf("it says %q", errs.String())
	}
	if !strings.Contains(out.String(), "ecmp") {
		t.Errorf("the table lacks the finished runs: %q", out.String())
	}
	first := filepath.Join(dir, "runs/ecmp/load-0.7/seed-1/result.json")
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if code := run(t.Context(), append(args, "--resume"), nil, &out, errs); code != cli.ExitDone || !strings.Contains(out.String(), "report.html") {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	if after, err := os.Stat(first); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the first run was run again: %v", err)
	}
}

// A cancelling writer calls cancel when the written text contains a word.
type cancelling struct {
	strings.Builder
	word   string
	cancel func()
}

// Write stores the text.
func (w *cancelling) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.word) {
		w.cancel()
	}
	return w.Builder.Write(p)
}
