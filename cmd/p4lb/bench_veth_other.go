//go:build !linux

package main

import "context"

// benchVeth is not called: nothing but Linux is Capable.
func benchVeth(context.Context, int) ([]measurement, error) { return nil, nil }
