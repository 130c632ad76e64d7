// Package report describes the result of a deployment, switch by switch.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
)

// A Report is the result of a deployment.
type Report struct {
	Switches []Switch      `json:"switches"`        // in the order of the plan
	Links    []Change      `json:"links,omitempty"` // links that differ from the plan
	Elapsed  time.Duration `json:"elapsed_ns"`
}

// A Switch is the result of a deployment for one switch.
type Switch struct {
	Name string `json:"name"`
	// Pushed: another program was running, so the program was pushed.
	Pushed bool `json:"pushed"`
	// Changes are the differences found. Except in a dry run, they were applied.
	Changes []Change `json:"changes,omitempty"`
	// Written is the number of changes that the switch has accepted.
	Written int `json:"written"`
	// Verified reports whether the switch was read again and equals the plan.
	Verified bool `json:"verified"`
	// RolledBack reports whether the switch was restored to its previous state.
	RolledBack bool `json:"rolled_back,omitempty"`
	// Notes describe steps that were impossible or skipped, but are not errors.
	Notes []string `json:"notes,omitempty"`
	// Err is the reason why the switch does not hold the plan.
	Err error `json:"-"`
	// Error is the text of Err.
	Error string `json:"error,omitempty"`
}

// A Change is a difference between the plan and a switch.
type Change struct {
	Kind   Kind   `json:"change"`
	Object string `json:"object"`           // such as "LbIngress.member gid=2 slot=0"
	Before string `json:"before,omitempty"` // the current state
	After  string `json:"after,omitempty"`  // the planned state
}

// A Kind is the kind of a change.
type Kind string

// The kinds of changes.
const (
	Insert Kind = "insert"
	Modify Kind = "modify"
	Delete Kind = "delete"
	Push   Kind = "push" // the program is pushed
)

// Written returns the number of changes on all switches.
func (r *Report) Written() int {
	n := 0
	for _, s := range r.Switches {
		n += s.Written
	}
	return n
}

// Verified reports whether every switch holds the plan and every link matches it.
func (r *Report) Verified() bool {
	return len(r.Links) == 0 && !slices.ContainsFunc(r.Switches, func(s Switch) bool { return !s.Verified })
}

// Err joins the errors of all switches to Errors; nil if there are none.
func (r *Report) Err() error {
	var list plan.Errors
	for _, s := range r.Switches {
		if e, ok := errors.AsType[*plan.Error](s.Err); ok {
			list = append(list, e)
		}
	}
	if list == nil {
		return nil
	}
	return list
}

// Rows returns the report as a table with a row for each switch.
func (r *Report) Rows() [][]string {
	rows := [][]string{{"SWITCH", "PROGRAM", "INSERTED", "MODIFIED", "DELETED", "WRITTEN", "STATE"}}
	for _, s := range r.Switches {
		counts := map[Kind]int{}
		for _, c := range s.Changes {
			counts[c.Kind]++
		}
		program := "kept"
		switch {
		case s.Pushed:
			program = "pushed"
		case counts[Push] > 0:
			program = "to push"
		}
		rows = append(rows, []string{
			s.Name, program, fmt.Sprint(counts[Insert]), fmt.Sprint(counts[Modify]), fmt.Sprint(counts[Delete]),
			fmt.Sprint(s.Written), s.state(),
		})
	}
	return rows
}

// state summarises the state of a switch in a word or two.
func (s *Switch) state() string {
	switch {
	case s.Verified:
		return "verified"
	case s.RolledBack:
		return "rolled back"
	case s.Err != nil:
		return "failed"
	case len(s.Notes) > 0:
		return s.Notes[0]
	}
	if len(s.Changes) > 0 {
		return "differs"
	}
	return "as planned"
}

// ChangeRows returns the changes of all switches as a table.
func (r *Report) ChangeRows() [][]string {
	rows := [][]string{{"SWITCH", "CHANGE", "OBJECT", "BEFORE", "AFTER"}}
	for _, s := range r.Switches {
		for _, c := range s.Changes {
			rows = append(rows, []string{s.Name, string(c.Kind), c.Object, cmp.Or(c.Before, "-"), cmp.Or(c.After, "-")})
		}
	}
	for _, c := range r.Links {
		rows = append(rows, []string{"-", string(c.Kind), c.Object, c.Before, c.After})
	}
	return rows
}
