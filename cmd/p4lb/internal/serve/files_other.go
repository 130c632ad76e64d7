//go:build !unix

package serve

import "math"

// maxFiles returns the maximum number of open files of the process.
func maxFiles() int { return math.MaxInt32 }
