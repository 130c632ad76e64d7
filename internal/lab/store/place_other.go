//go:build !linux

package store

// place is unknown on this system: workers are observed only by their counters.
func place() string { return "" }

func processExists(int) bool { return true }
