//go:build !linux

package traffic

import (
	"context"
	"errors"
)

// Run fails.
func Run(context.Context, Network, []Flow, Options) ([]Outcome, error) {
	return nil, errors.New("hosts are network namespaces, which Linux alone has")
}
