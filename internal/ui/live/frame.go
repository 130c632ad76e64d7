// Package live displays the state of a network: as a terminal screen (Watch), as
// metrics for Prometheus (Exporter), and as progress of a long task (Progress).
//
// It does not depend on switches or schemes. A Source returns frames: the decoded
// values of every switch at one moment, with the words to display them. The callers
// build the frames from a controller or a simulation.
package live

import (
	"context"
	"strconv"
	"time"
)

// A Source produces frames.
type Source interface {
	// Next waits for the next frame; the source decides how long. It returns io.EOF
	// after the last one. It is not called while the screen is paused, so virtual
	// time stops.
	Next(ctx context.Context) (*Frame, error)
}

// SourceFunc makes a function a Source.
type SourceFunc func(ctx context.Context) (*Frame, error)

// Next calls f.
func (f SourceFunc) Next(ctx context.Context) (*Frame, error) { return f(ctx) }

// A Frame is the state of a network at one moment. It must not be changed after it
// has been passed on.
type Frame struct {
	Scheme   string
	Fabric   string        // name of the topology
	Time     time.Duration // since the start of the display, or of virtual time
	Wall     time.Time     // time of this machine's clock; zero if time is virtual
	Virtual  bool          // the time is virtual
	Switches []Switch      // always in the same order
}

// A Switch is the state of one switch.
type Switch struct {
	Name   string
	Role   string
	Clock  time.Duration // the switch's own clock
	Err    string        // why there are no values, or ""
	Values []Value
}

// A Value is one decoded cell of a register.
type Value struct {
	Register string
	Index    string // the cell in words: port 3, or group 2 path 1
	Port     int    // port of the switch, or 0 if the value does not belong to a port
	Peer     string // the node at the other end of the port's link
	Group    int    // group of next hops, or 0 if the value does not belong to a group
	Path     int    // path of the group, counted from 1; 0 if the value does not belong to a path

	Number float64 // in Unit
	Unit   string  // "" for a plain number
	Text   string  // Number formatted for people; if "", live formats it

	Change  float64 // since the previous frame
	Rate    float64 // change per second of the switch's clock
	Meaning string  // a short description of the register
}

// text returns the value formatted for people.
func (v Value) text() string {
	switch {
	case v.Text != "":
		return v.Text
	case v.Unit == "":
		return number(v.Number)
	}
	return number(v.Number) + " " + v.Unit
}

// number formats x with about four digits.
func number(x float64) string {
	switch a := max(x, -x); {
	case a >= 1e15:
		return strconv.FormatFloat(x, 'g', 4, 64)
	case a >= 1000 || x == float64(int64(x)):
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

// signed formats x with its sign; zero becomes "".
func signed(x float64) string {
	switch {
	case x == 0:
		return ""
	case x > 0:
		return "+" + number(x)
	}
	return number(x)
}
