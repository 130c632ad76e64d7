package main

import (
	"encoding/csv"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme"
)

// TestTofinoRecord compares the recorded resources of programs with the current programs.
// If the number of lines differs, the record is older than the program, and the row must
// be marked as stale. For schemes without a program it compares the reasons.
func TestTofinoRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine does the work: the race detector has nothing to see")
	}
	f, err := os.Open("../../testdata/oracle/tofino.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma = '\t'
	r.LazyQuotes = true
	rows, err := r.ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	stale := 0
	for _, row := range rows[1:] {
		arch, name, lines, note := row[0], row[1], row[3], row[14]
		ports, err := strconv.Atoi(row[2])
		if err != nil {
			t.Fatal(err)
		}
		found, err := new(scheme.Library).Find(name)
		if err != nil {
			t.Fatal(err)
		}
		g, err := scheme.Make(found, codegen.Params{Arch: arch, Ports: ports})
		switch {
		case err != nil && lines != "-":
			t.Errorf("%s for %s, %d paths: %v", name, arch, ports, err)
		case err != nil && !strings.Contains(err.Error(), note):
			t.Errorf("%v, recorded as %q", err, note)
		case err == nil && note == "stale":
			stale++ // the program has changed since p4c measured it
		case err == nil && lines != "-" && strconv.Itoa(lineCount(textOf(t, g))) != lines:
			t.Errorf("%s for %s, %d paths: %d lines, measured with %s", name, arch, ports, lineCount(textOf(t, g)), lines)
		}
	}
	if stale > 0 {
		t.Logf("%d of %d rows are stale: measure them again with p4lb resources", stale, len(rows)-1)
	}
}

// TestFirstError finds the error in the compiler's output.
func TestFirstError(t *testing.T) {
	text := "x.p4(3): warning: unused\nx.p4(5): error: condition too complex\n"
	if got, want := firstError(text, os.ErrInvalid), "condition too complex"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := firstError("", os.ErrInvalid), "invalid argument"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
