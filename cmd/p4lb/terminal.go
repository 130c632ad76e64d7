package main

import (
	"io"
	"os"
)

// A painter colours text where it is true.
type painter bool

func (p painter) red(s string) string  { return p.sgr("31;1", s) }
func (p painter) bold(s string) string { return p.sgr("1", s) }

func (p painter) sgr(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// isTerminal reports whether w is a character device, which a person may be
// watching.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
