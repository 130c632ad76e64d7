//go:build !linux

package bench

import "context"

// Interfaces is never called, because only Linux is Capable.
func Interfaces(context.Context, int) ([]Measurement, error) { return nil, nil }
