package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is a pseudo-terminal between a program and a test that plays the user.
type terminal struct {
	t       *testing.T
	person  *os.File
	program *os.File
	seen    bytes.Buffer
}

func newTerminal(t *testing.T, width, height int) *terminal {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)})
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { program.Close() })
	return &terminal{t: t, person: person, program: program}
}

// await reads until the screen has had the text; the test's own deadline ends
// what never comes.
func (tm *terminal) await(text string) {
	tm.t.Helper()
	buf := make([]byte, 4096)
	for !strings.Contains(tm.seen.String(), text) {
		n, err := tm.person.Read(buf)
		if err != nil {
			tm.t.Fatalf("waiting for %q: %v\nseen: %q", text, err, tm.seen.String())
		}
		tm.seen.Write(buf[:n])
	}
}

func (tm *terminal) press(keys string) {
	tm.t.Helper()
	tm.seen.Reset()
	if _, err := tm.person.WriteString(keys); err != nil {
		tm.t.Fatal(err)
	}
}

// ticking is a source with a frame at every time that the ticker strikes.
func ticking(t *testing.T) Source {
	fake := &fakeSource{switches: 3, n: 1 << 30}
	ticker := time.NewTicker(20 * time.Millisecond)
	t.Cleanup(ticker.Stop)
	return SourceFunc(func(ctx context.Context) (*Frame, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
			return fake.Next(ctx)
		}
	})
}

// TestWatch runs the whole program as a person would.
func TestWatch(t *testing.T) {
	tm := newTerminal(t, 90, 20)
	ended := make(chan error, 1)
	go func() {
		ended <- Watch(t.Context(), ticking(t), Options{In: tm.program, Out: tm.program, NoColor: true})
	}()
	tm.await("qall-poly3 on leaf-spine")
	tm.press("\x1b[C") // right
	tm.await("[l1]")
	tm.press("/")
	tm.await("filter: ")
	tm.press("rtt\r")
	tm.await("3 of 10, filter rtt")
	tm.press("?")
	tm.await("drop the filter")
	tm.press("q")
	tm.await("\x1b[?1049l") // the alternate screen is off again
	if err := <-ended; err != nil {
		t.Errorf("watching ended with %v", err)
	}
}

// TestWatchInterrupted: Watch returns an error when its context ends.
func TestWatchInterrupted(t *testing.T) {
	tm := newTerminal(t, 90, 20)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Watch(ctx, ticking(t), Options{In: tm.program, Out: tm.program}) }()
	tm.await("qall-poly3 on leaf-spine")
	interrupt()
	tm.await("\x1b[?1049l")
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("watching ended with %v", err)
	}
}
