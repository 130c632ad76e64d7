package network

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/inspect"
)

// TestSaidOnce: inspect reports an unreachable switch once, not in every round.
func TestSaidOnce(t *testing.T) {
	var said strings.Builder
	j := &inspectJob{c: &cli.Console{Log: slog.New(slog.NewTextHandler(&said, nil))}}
	gone := func(text string) *inspect.Result { return &inspect.Result{Switch: "l1", Err: errors.New(text)} }
	for range 20 {
		if j.answered(gone("refused")) {
			t.Fatal("it has readings")
		}
	}
	j.answered(gone("no route"))
	if !j.answered(&inspect.Result{Switch: "l1", Snapshot: new(inspect.Snapshot)}) {
		t.Error("it has no readings")
	}
	j.answered(gone("refused"))
	if got := strings.Count(said.String(), "no readings"); got != 3 || !strings.Contains(said.String(), "readings as before") {
		t.Errorf("%d lines: %s", got, &said)
	}
}
