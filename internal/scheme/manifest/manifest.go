package manifest

import (
	"fmt"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// Version is the version of the format. A manifest of another version is refused.
const Version = 2

// MaxPaths is the largest group of paths that a manifest can speak of: cells by
// path are found at group*MaxPaths + slot.
const MaxPaths = 16

// A Manifest says what a program means and needs.
type Manifest struct {
	Version int    `json:"version"`
	Scheme  string `json:"scheme"`          // a name for the program
	Title   string `json:"title,omitempty"` // one line for people

	// The blocks of the catalogue that the program is composed of, which say
	// which model it has in the native engine. Other programs have none.
	Granularity string `json:"granularity,omitempty"`
	Signal      string `json:"signal,omitempty"`
	Choice      string `json:"choice,omitempty"`
	Guard       string `json:"guard,omitempty"`

	// Of a program that somebody has written: its file, of a manifest that is not
	// beside it, the folders of its includes, and macros that it is compiled with.
	Program  string            `json:"program,omitempty"`
	Includes []string          `json:"includes,omitempty"`
	Defines  map[string]string `json:"defines,omitempty"`

	Arch      Arch      `json:"arch"`
	Role      string    `json:"role,omitempty"`       // the switches that the program is for; "": all
	StatePath StatePath `json:"state_path,omitempty"` // "" without feedback
	Paths     int       `json:"paths,omitempty"`      // the largest group of next hops; 0: the program has no groups
	CPUPort   *int      `json:"cpu_port,omitempty"`   // of the controller; null: there is none

	Parameters  []Parameter `json:"parameters,omitempty"`   // that the program was generated with
	FlowTimeout Duration    `json:"flow_timeout,omitempty"` // a flow that pauses for so long begins anew
	Weights     *Weights    `json:"weights,omitempty"`      // by which paths are drawn
	Decides     string      `json:"decides,omitempty"`      // the label of the register that the choice of a path looks at

	Registers []Register `json:"registers,omitempty"`
	Counters  []Counter  `json:"counters,omitempty"`
	Tables    []Table    `json:"tables,omitempty"`
	Headers   []Header   `json:"headers,omitempty"`

	CloneSessions   []Session     `json:"clone_sessions,omitempty"` // which Tofino calls mirror sessions
	MulticastGroups []Multicast   `json:"multicast_groups,omitempty"`
	VirtualPorts    []VirtualPort `json:"virtual_ports,omitempty"`
	Generators      []Generator   `json:"packet_generators,omitempty"` // of Tofino
	Tasks           []Task        `json:"tasks,omitempty"`
	Deviations      []Deviation   `json:"deviations,omitempty"`

	Provenance *Provenance `json:"provenance,omitempty"`
}

// A Provenance says where a program comes from.
type Provenance struct {
	Generator string `json:"generator"`         // and its version
	Command   string `json:"command"`           // that makes it again
	Licence   string `json:"license,omitempty"` // of the program, as SPDX names it
}

// MadeBy is the provenance of what a verb of p4lb makes. Without a version, as
// goldens have it, only p4lb is named.
func MadeBy(version, verb string, args []string) *Provenance {
	return &Provenance{
		Generator: strings.TrimSpace("p4lb " + version),
		Command:   plain.Shell(append([]string{"p4lb", verb}, args...)),
	}
}

// String is what makes the program, and how.
func (p *Provenance) String() string { return p.Generator + ": " + p.Command }

// Arch is an architecture that a program is written for.
type Arch string

// The architectures: BMv2's, and those of Tofino 1 and 2.
const (
	V1Model Arch = "v1model"
	TNA     Arch = "tna"
	T2NA    Arch = "t2na"
)

// Words lists the architectures.
func (Arch) Words() []Word {
	return []Word{
		{string(V1Model), "of BMv2"},
		{string(TNA), "of Tofino"},
		{string(T2NA), "of Tofino 2"},
	}
}

// Hardware reports whether the architecture is one of Tofino's.
func (a Arch) Hardware() bool { return a == TNA || a == T2NA }

// StatePath is how what egress knows comes to ingress.
type StatePath string

// The ways.
const (
	Recirc StatePath = "recirc"
	Shared StatePath = "shared"
	Ghost  StatePath = "ghost"
)

// Words lists the ways.
func (StatePath) Words() []Word {
	return []Word{
		{string(Recirc), "in packets that are recirculated"},
		{string(Shared), "by registers that both pipelines reach, in software switches"},
		{string(Ghost), "by the ghost thread, of Tofino 2"},
	}
}

// A Parameter is one that the program was generated with.
type Parameter struct {
	Name   string `json:"name"`
	Text   string `json:"value"`  // as a user writes it
	Number int64  `json:"number"` // times in ns, rates in bit/s, sizes in bytes, shares in percent
}

// Register finds a register by its name, or nil.
func (m *Manifest) Register(name string) *Register {
	return find(m.Registers, func(r *Register) bool { return r.Name == name })
}

// Task finds the task of a kind, or nil.
func (m *Manifest) Task(kind TaskKind) *Task {
	return find(m.Tasks, func(t *Task) bool { return t.Kind == kind })
}

// Header finds the header of a kind, or nil.
func (m *Manifest) Header(kind HeaderKind) *Header {
	return find(m.Headers, func(h *Header) bool { return h.Kind == kind })
}

// HeaderNamed finds a header by its name, or nil.
func (m *Manifest) HeaderNamed(name string) *Header {
	return find(m.Headers, func(h *Header) bool { return h.Name == name })
}

// A Word is one of an enumeration.
type Word struct {
	Name  string
	About string // one line
}

// A Duration is a time, which manifests write as in 500us or 1.5ms.
type Duration time.Duration

// MarshalText writes the duration without a sign that is not ASCII.
func (d Duration) MarshalText() ([]byte, error) {
	return []byte(strings.Replace(time.Duration(d).String(), "µ", "u", 1)), nil
}

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q: want a time such as 500us, 1.5ms or 2s", text)
	}
	*d = Duration(v)
	return nil
}

// A Deviation is something in which the program differs from what it was
// written after, with what that costs.
type Deviation struct {
	What  string `json:"what"`
	Why   string `json:"why"`
	Error string `json:"error"`
}

// Short is the name of an object without the control that it is in.
func Short(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
