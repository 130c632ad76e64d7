//go:build !linux

package store

// place is not known here: workers are observed by their counters alone.
func place() string { return "" }

func processExists(int) bool { return true }
