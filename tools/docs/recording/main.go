// Command recording renders a terminal session as an animated SVG. It runs the
// commands in a file, one per line, in an empty folder, and shows their output
// with its timing. A test compares the commands in the picture with the file
// and with the existing flags.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

func main() {
	binary := flag.String("p4lb", "bin/p4lb", "the binary that the commands call p4lb")
	output := flag.String("o", "docs/session.svg", "the picture")
	rows := flag.Int("rows", 30, "lines in view")
	flag.Parse()
	if err := record(flag.Arg(0), *binary, *output, *rows); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func record(script, binary, output string, rows int) error {
	text, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	self, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "session-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Symlink(self, filepath.Join(dir, "p4lb")); err != nil {
		return err
	}
	var s session
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s.typed(line)
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "NO_COLOR=1", "COLUMNS=80")
		began := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
		s.printed(string(out), time.Since(began))
	}
	s.at += 6 // time to read the last lines
	return os.WriteFile(output, s.svg(rows), 0o644)
}

// A session is the content of the terminal, line by line, with the time at
// which each line appears.
type session struct {
	lines []line
	at    float64 // seconds so far
}

type line struct {
	text    string
	at      float64
	command bool
}

// typed adds a command at the speed of an experienced user.
func (s *session) typed(text string) {
	if len(s.lines) > 0 { // the picture must not begin empty
		s.at += 0.8
	}
	s.lines = append(s.lines, line{"$ " + text, s.at, true})
	s.at += 0.03 * float64(utf8.RuneCountInString(text))
}

// printed adds the output of a command after its run time, limited to a few
// seconds. Of lines that overwrite each other, such as a progress line, only
// the last one is kept.
func (s *session) printed(text string, took time.Duration) {
	s.at += min(took.Seconds(), 4)
	for text := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if i := strings.LastIndexByte(text, '\r'); i >= 0 {
			text = text[i+1:]
		}
		s.lines = append(s.lines, line{strings.TrimRight(text, " "), s.at, false})
		s.at += 0.02
	}
	s.lines = append(s.lines, line{"", s.at, false})
}

// svg draws the session: lines appear at their time, and the view scrolls when
// it is full. Without animation it shows the end.
func (s *session) svg(rows int) []byte {
	const (
		size, step, margin = 13.0, 18.0, 14.0
		columns            = 84
	)
	width, height := margin*2+columns*size*0.602, margin*2+float64(rows)*step
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="%g">`+"\n", width, height, size)
	fmt.Fprintf(&b, "<style>\nrect { fill: #16181c } text { fill: #d8dbe0; white-space: pre } .c { fill: #7cc0ff; font-weight: 600 }\n")
	fmt.Fprintf(&b, "@keyframes show { from { opacity: 0 } to { opacity: 1 } }\n")
	over := max(0, len(s.lines)-rows)
	fmt.Fprintf(&b, "#roll { transform: translateY(%.0fpx) }\n@media (prefers-reduced-motion: no-preference) {\n.l { opacity: 0; animation: show 1ms linear forwards }\n", -float64(over)*step)
	if over > 0 {
		fmt.Fprintf(&b, "#roll { animation: roll %.2fs step-end forwards }\n@keyframes roll {\n", s.at)
		for i := 0; i <= over; i++ {
			at := 0.0
			if i > 0 {
				at = 100 * s.lines[rows+i-1].at / s.at
			}
			fmt.Fprintf(&b, "%.3f%% { transform: translateY(%.0fpx) }\n", at, -float64(i)*step)
		}
		b.WriteString("}\n")
	}
	b.WriteString("}\n</style>\n<rect width=\"100%\" height=\"100%\" rx=\"8\"/>\n")
	fmt.Fprintf(&b, "<svg x=\"0\" y=\"%g\" width=\"%.0f\" height=\"%.0f\"><g id=\"roll\">\n", margin, width, float64(rows)*step)
	for i, l := range s.lines {
		class := "l"
		if l.command {
			class = "l c"
		}
		fmt.Fprintf(&b, `<text class="%s" x="%g" y="%.0f" style="animation-delay:%.2fs" xml:space="preserve">%s</text>`+"\n", class, margin, float64(i)*step+size, l.at, html.EscapeString(clip(l.text, columns)))
	}
	b.WriteString("</g></svg>\n</svg>\n")
	return b.Bytes()
}

func clip(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	return string([]rune(text)[:columns-1]) + "…"
}
