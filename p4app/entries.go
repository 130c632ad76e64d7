package p4app

import (
	"bytes"
	"fmt"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/p4rt"
)

// An Error is what is wrong with a line of a file.
type Error struct {
	File string
	Line int
	Msg  string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Entries is what a file says that a switch holds.
type Entries struct {
	file     string
	updates  []*p4v1.Update
	lines    []int // of the updates
	settings []setting
}

// A setting is of what P4Runtime does not have: queues, hashes.
type setting struct {
	line int
	do   func(*p4rt.Device) error
}

// ParseEntries reads a file of commands or JSON, and looks its names up.
func ParseEntries(file string, text []byte, info *configv1.P4Info) (*Entries, error) {
	e := &Entries{file: file}
	n := newNames(info)
	var err error
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte{'{'}) {
		err = e.runtime(n, text)
	} else {
		err = e.commands(n, string(text))
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Len is the number of updates and settings.
func (e *Entries) Len() int { return len(e.updates) + len(e.settings) }

func (e *Entries) errorf(line int, format string, args ...any) error {
	return &Error{e.file, line, fmt.Sprintf(format, args...)}
}

func (e *Entries) put(line int, typ p4v1.Update_Type, entity *p4v1.Entity) {
	e.updates = append(e.updates, &p4v1.Update{Type: typ, Entity: entity})
	e.lines = append(e.lines, line)
}

func (e *Entries) set(line int, do func(*p4rt.Device) error) {
	e.settings = append(e.settings, setting{line, do})
}

// Apply writes all to a switch that has the program, or no update at all.
func (e *Entries) Apply(server *p4rt.Server, dev *p4rt.Device) error {
	if i, err := server.Put(e.updates); err != nil {
		return e.errorf(e.lines[i], "%v", err)
	}
	for _, s := range e.settings {
		if err := s.do(dev); err != nil {
			return e.errorf(s.line, "%v", err)
		}
	}
	return nil
}
