//go:build !linux

package traffic

import (
	"context"
	"errors"
)

// Run returns an error on this system.
func Run(context.Context, Network, []Flow, Options) ([]Outcome, error) {
	return nil, errors.New("sending flows needs network namespaces: use Linux")
}
