package p4app

import (
	"bytes"
	"fmt"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// A lineError is an error in a line of a file.
type lineError struct {
	File string
	Line int
	Msg  string
}

func (e *lineError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Entries is the parsed content of a file with entries for a switch.
type Entries struct {
	file     string
	updates  []*p4v1.Update
	lines    []int // line of each update
	settings []setting
}

// Settings applies settings that P4Runtime lacks: registers, queues, hashes. An argument of -1
// means none or all, depending on the method.
type Settings interface {
	SetSession(id, port, group int) error
	WriteRegister(name string, from, to int, value uint64) error
	WriteCounter(name string, from, to int, packets, bytes uint64) error
	SetMeter(name string, index int, rates []dataplane.MeterRate) error
	SetQueueRate(port, priority int, rate uint64) error
	SetQueueDepth(port, priority, packets int) error
	SetCRC(calculation string, c hash.CRC) error
	AddValue(set string, value []byte) error
}

// A setting is a call of a method of Settings.
type setting struct {
	line int
	do   func(Settings) error
}

// device implements Settings for the embedded switch.
type device struct{ *p4rt.Device }

func (d device) SetMeter(name string, index int, rates []dataplane.MeterRate) error {
	if index < 0 {
		return d.Switch().Meters().SetAll(name, rates)
	}
	return d.Switch().Meters().Set(name, index, rates)
}

func (d device) SetCRC(calculation string, c hash.CRC) error {
	return d.Switch().Hashes().SetCRC(calculation, c)
}

func (d device) AddValue(set string, value []byte) error {
	return d.Switch().ValueSets().Edit(set, func(members []dataplane.SetMember) []dataplane.SetMember {
		return append(members, dataplane.SetMember{Value: value})
	})
}

// ParseEntries parses a file with commands or JSON and resolves its names.
func ParseEntries(file string, text []byte, info *configv1.P4Info) (*Entries, error) {
	e := &Entries{file: file}
	n := &names{info: info, actions: map[uint32]*configv1.Action{}}
	for _, a := range info.GetActions() {
		n.actions[a.GetPreamble().GetId()] = a
	}
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

// Len returns the number of updates and settings.
func (e *Entries) Len() int { return len(e.updates) + len(e.settings) }

func (e *Entries) errorf(line int, format string, args ...any) error {
	return &lineError{e.file, line, fmt.Sprintf(format, args...)}
}

func (e *Entries) put(line int, typ p4v1.Update_Type, entity *p4v1.Entity) {
	e.updates = append(e.updates, &p4v1.Update{Type: typ, Entity: entity})
	e.lines = append(e.lines, line)
}

func (e *Entries) set(line int, do func(Settings) error) {
	e.settings = append(e.settings, setting{line, do})
}

// Apply writes everything to an embedded switch that runs the program. If one
// update fails, no update is applied.
func (e *Entries) Apply(server *p4rt.Server, dev *p4rt.Device) error {
	if i, err := server.Put(e.updates); err != nil {
		return e.At(i, err)
	}
	return e.Settle(device{dev})
}

// Updates returns the P4Runtime updates in order.
func (e *Entries) Updates() []*p4v1.Update { return e.updates }

// At adds the line of an update to an error about it.
func (e *Entries) At(update int, err error) error {
	if update < 0 || update >= len(e.lines) {
		return err
	}
	return e.errorf(e.lines[update], "%v", err)
}

// Settle applies the settings. The updates must have been applied before.
func (e *Entries) Settle(sw Settings) error {
	for _, s := range e.settings {
		if err := s.do(sw); err != nil {
			return e.errorf(s.line, "%v", err)
		}
	}
	return nil
}
