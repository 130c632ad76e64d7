package live

import (
	"strings"
	"testing"
	"time"
)

func TestProgressLines(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := NewProgress(ProgressOptions{Out: &out, What: "deploy", Unit: "switches", Now: func() time.Time { return now }})
	p.Set(0, "")
	now = now.Add(10 * time.Second)
	p.Set(0, "connecting")
	p = NewProgress(ProgressOptions{Out: &out, What: "deploy", Unit: "switches", Total: 80, Now: func() time.Time { return now }})
	for done := 1; done <= 60; done++ {
		now = now.Add(500 * time.Millisecond)
		p.Set(done, "")
	}
	now = now.Add(10 * time.Second)
	p.Set(80, "l80")
	p.End()
	const want = `deploy: 0 switches, connecting
deploy: 25 %, 20 of 80 switches, 2/s, 30s left
deploy: 50 %, 40 of 80 switches, 2/s, 20s left
deploy: 75 %, 60 of 80 switches, 2/s, 10s left
deploy: 100 %, 80 of 80 switches, 2/s, l80
`
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

func TestProgressBar(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := NewProgress(ProgressOptions{Out: &out, Terminal: true, What: "lab", Unit: "runs", Total: 6, Now: func() time.Time { return now }})
	for done := 1; done <= 5; done++ {
		now = now.Add(50 * time.Millisecond)
		p.Set(done, "")
	}
	p.End()
	p.End()
	const want = "\rlab ████████░░░░░░░░░░░░░░░░ 33 %, 2 of 6 runs, 20/s, 0s left\x1b[K" +
		"\rlab ████████████████░░░░░░░░ 66 %, 4 of 6 runs, 20/s, 0s left\x1b[K" +
		"\r\x1b[K"
	if out.String() != want {
		t.Errorf("got:\n%q\nwant:\n%q", out.String(), want)
	}
}

// TestProgressHeld: a Progress prints nothing while something else uses the terminal,
// and the elapsed time afterwards, even without progress.
func TestProgressHeld(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := NewProgress(ProgressOptions{Out: &out, What: "lab", Unit: "runs", Now: func() time.Time { return now }})
	p.Of(6, 2)
	p.Hold(true)
	now = now.Add(20 * time.Second)
	p.Set(3, "")
	p.Hold(false)
	now = now.Add(5 * time.Second)
	p.Tick()
	p.Tick()
	if want := "lab: 50 %, 3 of 6 runs, 0/s, 1m15s left\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
