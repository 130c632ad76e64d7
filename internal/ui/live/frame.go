// Package live displays the state of a network: as a terminal screen (Watch), as
// metrics for Prometheus (Exporter), and as progress of a long task (Progress).
//
// It does not know switches or schemes. A Source returns frames: the decoded values of
// every switch at one moment, with the words to display them. Callers with a
// controller or a simulation build the frames.
package live

import (
	"context"
	"strconv"
	"time"
)

// A Source has something to watch.
type Source interface {
	// Next waits for the next frame, for as long as the source finds right. It
	// returns io.EOF after the last one. While the screen is paused it is not
	// called, so that virtual time stands still.
	Next(ctx context.Context) (*Frame, error)
}

// SourceFunc makes a function a Source.
type SourceFunc func(ctx context.Context) (*Frame, error)

// Next calls f.
func (f SourceFunc) Next(ctx context.Context) (*Frame, error) { return f(ctx) }

// A Frame is the state of a network at one moment. The caller must not change it after
// passing it on.
type Frame struct {
	Scheme   string
	Fabric   string        // name of the topology
	Time     time.Duration // since the watching, or the simulated time, began
	Wall     time.Time     // on the clock of this machine; zero where time is simulated
	Virtual  bool          // the time is simulated
	Switches []Switch      // always in the same order
}

// A Switch is the state of one switch.
type Switch struct {
	Name   string
	Role   string
	Clock  time.Duration // of the switch itself
	Err    string        // why there are no values, "" if there are
	Values []Value
}

// A Value is one decoded cell of a register.
type Value struct {
	Register string
	Index    string // which cell, in words: port 3, or group 2 path 1
	Port     int    // of the switch, 0 where the value is about none
	Peer     string // the node behind the port
	Group    int    // of next hops, 0 where the value is about none
	Path     int    // of the group, counted from 1; 0 where the value is about none

	Number float64 // in Unit
	Unit   string  // "" for a plain number
	Text   string  // Number as a person reads it; "" lets live write it

	Change  float64 // since the frame before
	Rate    float64 // change per second of the switch's clock
	Meaning string  // a short description of the register
}

// text is the value as a person reads it.
func (v Value) text() string {
	switch {
	case v.Text != "":
		return v.Text
	case v.Unit == "":
		return number(v.Number)
	}
	return number(v.Number) + " " + v.Unit
}

// number writes x in about four digits.
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

// signed writes x with its sign, and no change as nothing.
func signed(x float64) string {
	switch {
	case x == 0:
		return ""
	case x > 0:
		return "+" + number(x)
	}
	return number(x)
}
