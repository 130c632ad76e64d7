package controller_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/p4lb/p4lb/internal/controller/inspect"
)

// TestRecording reads back a recording round by round, in both formats.
func TestRecording(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "dhlb", nil)
	inspectors := []*inspect.Inspector{n.inspector("l1", inspect.Options{}), n.inspector("s1", inspect.Options{})}
	var rounds [][]*inspect.Snapshot
	for i := range 3 {
		n.write("l1", "deg", 2<<4+1, uint64(i))
		n.now += ms
		var round []*inspect.Snapshot
		for _, in := range inspectors {
			s := snapshot(t, in)
			s.Time = time.Duration(i) * 7 * ms
			round = append(round, s)
		}
		rounds = append(rounds, round)
	}
	for _, form := range inspect.RecordFormats {
		r := reopened(t, recordingOf(t, form, slices.Concat(rounds...)...))
		for i, round := range rounds {
			got, err := r.Round()
			if err != nil {
				t.Fatal(err)
			}
			var want []*inspect.Snapshot
			for _, s := range round { // neither meanings nor tables of flows are recorded
				bare := *s
				bare.Flows, bare.Readings = nil, slices.Clone(s.Readings)
				for j := range bare.Readings {
					bare.Readings[j].Meaning = ""
				}
				want = append(want, &bare)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, round %d (-recorded +read):\n%.1000s", form, i, diff)
			}
		}
		if _, err := r.Round(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: after the last round: %v", form, err)
		}
	}
}

// TestBrokenRecording: errors name the file and the line.
func TestBrokenRecording(t *testing.T) {
	good := recordingOf(t, "csv", &inspect.Snapshot{Switch: "l1", Readings: []inspect.Reading{{Quantity: "x"}, {Quantity: "y"}}})
	lines := strings.SplitAfter(string(good), "\n")
	for _, c := range []struct{ text, want string }{
		{"", "f: empty"},
		{"a,b\n", "f:1: no column time_us"},
		{lines[0] + lines[1] + strings.Replace(lines[2], ",0,", ",none,", 1), `f:3: clock_us: "none" is not a number`},
		{lines[0] + "1,2\n", "f:2: wrong number of fields"},
		{lines[0] + "\"", "f:2: "},
		{"PAR1 and nothing else", "f: no recording: "},
	} {
		r, err := inspect.OpenRecording("f", strings.NewReader(c.text), int64(len(c.text)))
		for err == nil {
			_, err = r.Round()
		}
		if !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.40q: error %q, want %q", c.text, err, c.want)
		}
	}
}

// TestRecordingOfManySwitches: a round of very many is refused, and not searched for
// each of its rows.
func TestRecordingOfManySwitches(t *testing.T) {
	var round []*inspect.Snapshot
	for i := range 60_001 {
		round = append(round, &inspect.Snapshot{Switch: fmt.Sprint("s", i), Readings: []inspect.Reading{{Quantity: "x"}}})
	}
	r := reopened(t, recordingOf(t, "csv", round...))
	if _, err := r.Round(); err == nil || err.Error() != "f: at 0s more than 60000 switches" {
		t.Error(err)
	}
}

// TestRecordingForATerminal: texts of a recording are escaped for the terminal.
func TestRecordingForATerminal(t *testing.T) {
	for _, form := range inspect.RecordFormats {
		evil := "\x1b[2J"
		r := reopened(t, recordingOf(t, form, &inspect.Snapshot{Switch: evil, Role: evil, Scheme: evil, Readings: []inspect.Reading{{Quantity: evil, Unit: evil}}}))
		round, err := r.Round()
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%+v", round[0]); strings.Contains(got, "\x1b") || round[0].Switch != `\x1b[2J` {
			t.Errorf("%s: %q", form, got)
		}
	}
}

// recordingOf returns the recording of snapshots.
func recordingOf(t testing.TB, form string, list ...*inspect.Snapshot) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := inspect.NewRecorder(&file, form)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func reopened(t *testing.T, text []byte) *inspect.Recording {
	t.Helper()
	r, err := inspect.OpenRecording("f", bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// FuzzRecording reads anything without a panic.
func FuzzRecording(f *testing.F) {
	for _, form := range inspect.RecordFormats {
		f.Add(recordingOf(f, form, &inspect.Snapshot{Switch: "l1", Readings: []inspect.Reading{{Quantity: "x"}}}))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := inspect.OpenRecording("f", bytes.NewReader(text), int64(len(text)))
		for range 1000 {
			if err != nil {
				return
			}
			_, err = r.Round()
		}
	})
}
