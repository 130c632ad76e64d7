// Package registers defines the access to registers of a switch and decodes their
// cells with the types in the manifest. An Array contains plain numbers, regardless of
// how the program packs, copies or scales its cells.
package registers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// A Meter returns the packets received, sent and dropped at the ports of a switch,
// independent of the program. The Access of a target implements it if the target has
// such counters.
type Meter interface {
	// PortCounts returns the counters of all ports, sorted by number. The error
	// wraps errors.ErrUnsupported if the target has no such counters.
	PortCounts(ctx context.Context) ([]bmv2.PortCounts, error)
}

// A QueueTeller reports whether packets wait in a switch. The Registers of a target implement it
// if the target knows.
type QueueTeller interface {
	QueuesEmpty(ctx context.Context) (bool, error)
}

// An injector makes frames arrive at the ports of a switch. The Access of a target
// is an injector if the target controls the links.
type injector interface {
	Inject(ctx context.Context, port int, frame []byte) error
}

// Inject makes a frame arrive at a port of the switch.
func Inject(ctx context.Context, a Access, port int, frame []byte) error {
	if i, ok := a.(injector); ok {
		return i.Inject(ctx, port, frame)
	}
	return fmt.Errorf("a frame for port %d: this target takes frames from its controller at the CPU port only: leave out in: %w", port, errors.ErrUnsupported)
}

// Access reads and writes the registers of one switch, by any protocol. Its methods are safe for
// concurrent use, and their errors contain the register's name.
type Access interface {
	// Read appends the cells from ≤ i < to of a register to dst. It reads them atomically if the
	// switch supports this.
	Read(ctx context.Context, name string, from, to int, dst []uint64) ([]uint64, error)
	// Write sets these cells to a value.
	Write(ctx context.Context, name string, from, to int, value uint64) error
	// Clock returns the clock of the switch's timestamps. If it is unavailable, the error wraps
	// ErrNoClock.
	Clock(ctx context.Context) (time.Duration, error)
}

// A Fabric accesses the registers of many switches, by switch name.
type Fabric interface {
	// ReadRegister appends the cells from ≤ i < to of a register to dst.
	ReadRegister(sw, register string, from, to int, dst []uint64) ([]uint64, error)
	// WriteRegister sets the cells from ≤ i < to.
	WriteRegister(sw, register string, from, to int, value uint64) error
	// Clock returns the clock of the switch's timestamps. If it is unavailable, the error wraps
	// ErrNoClock.
	Clock(sw string) (time.Duration, error)
}

// ErrNoClock reports that the switch's clock is unavailable.
var ErrNoClock = errors.New("the target has no way to the clock of its data plane")
