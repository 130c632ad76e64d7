//go:build !linux

package testbed

import (
	"context"
	"errors"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
)

var errLinux = &plan.Error{
	Err:  errors.New("the bmv2 target makes network namespaces, which only Linux has"),
	Hint: "leave out --target: the embedded switch runs everywhere",
}

// A Target runs nothing on this system.
type Target struct{}

var _ target.Target = (*Target)(nil)

// New returns a target that cannot be started.
func New(Options) *Target { return &Target{} }

// Name returns bmv2.
func (t *Target) Name() string { return "bmv2" }

// Start fails.
func (t *Target) Start(context.Context, *plan.Plan) error { return errLinux }

// Endpoint fails.
func (t *Target) Endpoint(string) (target.Endpoint, error) {
	return target.Endpoint{}, errLinux
}

// Socket fails.
func (t *Target) Socket(string) (int, error) { return 0, errLinux }

// Socket fails.
func (Sockets) Socket(string) (int, error) { return 0, errLinux }

// Datagrams fails.
func (Sockets) Datagrams(string) (int, error) { return 0, errLinux }

// In fails.
func (t *Target) In(string, func() error) error { return errLinux }

// Close does nothing.
func (t *Target) Close() error { return nil }

// Remove finds nothing on this system.
func Remove(string) (bool, error) { return false, errLinux }
