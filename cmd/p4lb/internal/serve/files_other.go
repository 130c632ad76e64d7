//go:build !unix

package serve

import "math"

// maxFiles is how many files a process may have open.
func maxFiles() int { return math.MaxInt32 }
