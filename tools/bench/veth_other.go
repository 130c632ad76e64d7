//go:build !linux

package bench

import "context"

// Interfaces is not called: nothing but Linux is Capable.
func Interfaces(context.Context, int) ([]Measurement, error) { return nil, nil }
