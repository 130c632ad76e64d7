package syntax

import (
	"regexp"
	"sync"
)

var licences = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\W*SPDX-License-Identifier:[ \t]*([A-Za-z0-9.+() -]*[A-Za-z0-9.+)])`)
})

// Licence returns the licence in a comment of the form SPDX-License-Identifier:
// Apache-2.0, or "" if there is none.
func Licence(text []byte) string {
	m := licences().FindSubmatch(text)
	if m == nil {
		return ""
	}
	return string(m[1])
}
