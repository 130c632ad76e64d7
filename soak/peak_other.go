//go:build !unix

package main

import "os"

// peak is not to be had here.
func peak(*os.ProcessState) int64 { return 0 }

func residentPeak(int) int64 { return 0 }
