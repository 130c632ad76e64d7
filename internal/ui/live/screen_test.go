package live

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the expected screens")

// A fakeSource hands out the n frames that sample makes, then io.EOF or err.
type fakeSource struct {
	switches, n, at int
	err             error
}

func (f *fakeSource) Next(context.Context) (*Frame, error) {
	if f.at == f.n {
		if f.err != nil {
			return nil, f.err
		}
		return nil, io.EOF
	}
	f.at++
	return sample(f.at, f.switches), nil
}

// sample is the frame number k of a fabric with some registers: the occupancy
// of six ports, which rises and falls, a counter that only grows, and flowlets
// on three paths. The last but one switch cannot be read in every fifth frame.
func sample(k, switches int) *Frame {
	f := &Frame{Scheme: "qall-poly3", Fabric: "leaf-spine", Time: time.Duration(k) * time.Second}
	for i := 1; i <= switches; i++ {
		sw := Switch{Name: fmt.Sprintf("l%d", i), Role: "leaf", Clock: f.Time}
		if k%5 == 0 && i == switches-1 {
			sw.Err = "read of q_L: the switch does not answer"
		} else {
			sw.Values = sampleValues(k, i)
		}
		f.Switches = append(f.Switches, sw)
	}
	return f
}

func sampleValues(k, i int) []Value {
	var values []Value
	for port := 1; port <= 6; port++ {
		occupancy := func(k int) float64 {
			if port <= 2 {
				return 0
			}
			return math.Round(100*(0.5+0.5*math.Sin(float64(k*port+i)/3))) / 100
		}
		change := occupancy(k) - occupancy(k-1)
		values = append(values, Value{
			Register: "q_L", Index: fmt.Sprintf("port %d", port), Port: port, Number: occupancy(k),
			Text: fmt.Sprintf("%.0f %%", 100*occupancy(k)), Unit: "occupancy", Change: change, Rate: change,
			Meaning: "queue occupancy as last reported",
		})
	}
	values = append(values, Value{
		Register: "rc_sum", Number: float64(k * i * 1000), Unit: "packets", Change: float64(i * 1000), Rate: float64(i * 1000),
		Meaning: "packets recirculated in all",
	})
	for path := 1; path <= 3; path++ {
		values = append(values, Value{
			Register: "rtt", Index: fmt.Sprintf("group 2 path %d", path), Group: 2, Path: path,
			Number: 99.5 + float64(path), Unit: "us", Meaning: "round-trip time of a path",
		})
	}
	return values
}

// TestScreens plays the steps of each archive in testdata and compares what
// the step "show" shows. The steps: size WIDTH HEIGHT, switches N, frames N
// (in all), step (take one frame), key KEY..., type TEXT, show.
func TestScreens(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var steps, want string
			for _, f := range ar.Files {
				switch f.Name {
				case "steps":
					steps = string(f.Data)
				case "want":
					want = string(f.Data)
				}
			}
			got := play(t, steps)
			if *update {
				ar.Files = []txtar.File{{Name: "steps", Data: []byte(steps)}, {Name: "want", Data: []byte(got)}}
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("the screens differ:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// A player drives a screen as bubbletea would.
type player struct {
	t      *testing.T
	screen *screen
	next   tea.Cmd
	quit   bool
}

func play(t *testing.T, steps string) string {
	source := &fakeSource{switches: 2, n: math.MaxInt}
	p := &player{t: t, screen: newScreen(t.Context(), source, Options{NoColor: true})}
	p.next = p.screen.Init()
	var out strings.Builder
	for line := range strings.Lines(steps) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "size":
			var msg tea.WindowSizeMsg
			fmt.Sscan(rest, &msg.Width, &msg.Height)
			p.send(msg)
		case "switches":
			fmt.Sscan(rest, &source.switches)
		case "frames":
			fmt.Sscan(rest, &source.n)
		case "step":
			p.step()
		case "key":
			for _, k := range strings.Fields(rest) {
				p.send(keyMsg(k))
			}
		case "type":
			p.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(rest)})
		case "show":
			out.WriteString(p.show())
		default:
			t.Fatalf("no such step: %s", line)
		}
	}
	return out.String()
}

// show is the screen between two lines of its width, which it must keep to.
func (p *player) show() string {
	s := p.screen
	lines := strings.Split(s.View(), "\n")
	if len(lines) > s.height {
		p.t.Errorf("%d lines on a screen of %d", len(lines), s.height)
	}
	for i, l := range lines {
		if n := len([]rune(l)); n > s.width {
			p.t.Errorf("%d columns on a screen of %d: %s", n, s.width, l)
		}
		lines[i] = strings.TrimRight(l, " ")
	}
	rule := strings.Repeat("=", s.width)
	end := ""
	if p.quit {
		end = "quit\n"
	}
	return rule + "\n" + strings.Join(lines, "\n") + "\n" + end
}

func (p *player) send(msg tea.Msg) {
	_, cmd := p.screen.Update(msg)
	p.follow(cmd)
}

// step makes the source answer.
func (p *player) step() {
	if p.next == nil {
		return
	}
	msg := p.next()
	p.next = nil
	p.send(msg)
}

// follow keeps a command that asks for a frame and notes one that quits.
func (p *player) follow(cmd tea.Cmd) {
	switch {
	case cmd == nil:
	case p.screen.waiting:
		p.next = cmd
	default:
		_, p.quit = cmd().(tea.QuitMsg)
	}
}

func keyMsg(name string) tea.KeyMsg {
	types := map[string]tea.KeyType{
		"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "backspace": tea.KeyBackspace,
		"left": tea.KeyLeft, "right": tea.KeyRight, "up": tea.KeyUp, "down": tea.KeyDown,
		"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
		"ctrl+c": tea.KeyCtrlC,
	}
	if typ, ok := types[name]; ok {
		return tea.KeyMsg{Type: typ}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}

// TestAnySize draws each view at every small size: nothing may panic or leave
// the screen.
func TestAnySize(t *testing.T) {
	for _, view := range []string{"", "l1", "l3"} {
		p := &player{t: t, screen: newScreen(t.Context(), &fakeSource{switches: 4, n: 5}, Options{NoColor: true, Switch: view})}
		p.next = p.screen.Init()
		for range 6 {
			p.step()
		}
		for _, keys := range []string{"", "end s", "?"} {
			for _, k := range strings.Fields(keys) {
				p.send(keyMsg(k))
			}
			for width := range 100 {
				for height := range 12 {
					p.send(tea.WindowSizeMsg{Width: width, Height: height})
					if width > 0 && height > 0 {
						p.show()
					} else if p.screen.View() != "" {
						t.Errorf("%dx%d: something on no screen", width, height)
					}
				}
			}
		}
	}
}

// TestSourceFails: an error of the source ends the watch.
func TestSourceFails(t *testing.T) {
	broken := errors.New("broken")
	p := &player{t: t, screen: newScreen(t.Context(), &fakeSource{switches: 1, n: 1, err: broken}, Options{NoColor: true})}
	p.next = p.screen.Init()
	p.step()
	p.step()
	if !p.quit || !errors.Is(p.screen.err, broken) {
		t.Errorf("quit %v with error %v", p.quit, p.screen.err)
	}
}

// TestPausedAsksForNothing: virtual time stands still in a pause, and the frame in
// progress is not lost.
func TestPausedAsksForNothing(t *testing.T) {
	source := &fakeSource{switches: 1, n: 9}
	p := &player{t: t, screen: newScreen(t.Context(), source, Options{NoColor: true})}
	p.next = p.screen.Init()
	p.step()
	p.send(keyMsg("p"))
	for range 3 {
		p.step()
	}
	if source.at != 2 || p.screen.frame.Time != time.Second {
		t.Fatalf("paused at frame %d, the source at %d: want 1 and 2", p.screen.frame.Time/time.Second, source.at)
	}
	p.send(keyMsg("p"))
	if p.screen.frame.Time != 2*time.Second {
		t.Errorf("going on at %v: want 2s", p.screen.frame.Time)
	}
	p.step()
	if source.at != 3 {
		t.Errorf("the source is at %d: want 3", source.at)
	}
}

// TestHistoriesForget: series of removed cells are dropped.
func TestHistoriesForget(t *testing.T) {
	var m memory
	for k := range 10 * span {
		m.add(&Frame{Switches: []Switch{{Name: "l1", Values: []Value{
			{Register: "r", Index: fmt.Sprint(k), Number: 1}, {Register: "r", Index: "stays", Number: float64(k)},
		}}}})
	}
	if n := len(m.cells); n > span+3 {
		t.Errorf("%d histories for 2 cells at a time and %d frames", n, span)
	}
	if got := m.of(cell{sw: "l1", register: "r", index: "stays"}); len(got) != span || got[span-1] != 10*span-1 {
		t.Errorf("history of %d points that ends in %v", len(got), got[len(got)-1])
	}
}

func TestSparkline(t *testing.T) {
	for _, tt := range []struct {
		points []float64
		width  int
		want   string
	}{
		{nil, 8, ""},
		{[]float64{3, 3, 3}, 8, "▁▁▁"},
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 8, "▁▂▃▄▅▆▇█"},
		{[]float64{9, 9, 0, -1}, 2, "█▁"},
	} {
		if got := sparkline(tt.points, tt.width); got != tt.want {
			t.Errorf("sparkline(%v, %d) = %q, want %q", tt.points, tt.width, got, tt.want)
		}
	}
}

func BenchmarkFrame(b *testing.B) {
	s := newScreen(b.Context(), &fakeSource{}, Options{NoColor: true})
	f := sample(1, 20)
	for i := range f.Switches {
		for len(f.Switches[i].Values) < 500 {
			v := f.Switches[i].Values[0]
			v.Index = fmt.Sprintf("port %d", len(f.Switches[i].Values))
			f.Switches[i].Values = append(f.Switches[i].Values, v)
		}
	}
	for b.Loop() {
		s.take(f)
		_ = s.View()
	}
}
