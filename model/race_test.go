//go:build race

package model_test

// raced is whether the race detector makes everything slow.
const raced = true
