package fitting

import (
	"fmt"
	"slices"
	"strings"
)

// workloads are the applications in QALL (Section VII-A), which fits one model for
// each mix of them.
var workloads = []string{"websearch", "datamining", "cache", "hadoop"}

// Patterns lists the 15 mixes of workloads, single workloads first.
func Patterns() []string {
	var list []string
	for size := range len(workloads) {
		for set := 1; set < 1<<len(workloads); set++ {
			var names []string
			for i, w := range workloads {
				if set>>i&1 == 1 {
					names = append(names, w)
				}
			}
			if len(names) == size+1 {
				list = append(list, strings.Join(names, "+"))
			}
		}
	}
	return list
}

// ParsePattern parses a mix in any order, such as hadoop+websearch, and returns its
// name in Patterns.
func ParsePattern(s string) (string, error) {
	names := strings.Split(s, "+")
	for i, n := range names {
		if !slices.Contains(workloads, n) {
			return "", fmt.Errorf("no workload %q: want a mix of %s, such as websearch+hadoop", n, strings.Join(workloads, ", "))
		}
		if slices.Contains(names[:i], n) {
			return "", fmt.Errorf("the workload %s is twice in %s", n, s)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Index(workloads, a) - slices.Index(workloads, b) })
	return strings.Join(names, "+"), nil
}
