//go:build !linux

package target

import (
	"errors"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// An interfaceMeter is not available on this system.
type interfaceMeter struct{}

func newInterfaceMeter(string) (*interfaceMeter, error) {
	return nil, errors.New("interfaces are counted on Linux only")
}

func (*interfaceMeter) counts() ([]bmv2.PortCounts, error) { return nil, nil }
