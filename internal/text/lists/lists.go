// Package lists has what the standard library's slices lacks.
package lists

import (
	"cmp"
	"slices"
)

// Map is f of each of list, in its order, and nil where there is none.
func Map[A, B any](list []A, f func(A) B) []B {
	if len(list) == 0 {
		return nil
	}
	out := make([]B, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// Filter is those of list that keep takes, in their order, in a list of their
// own: nil for none.
func Filter[A any](list []A, keep func(A) bool) []A {
	var out []A
	for _, x := range list {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// First is the first of list that is meets, and none's zero value where none does.
func First[A any](list []A, is func(A) bool) (none A) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return none
}

// Or is list, or other where list is nil.
func Or[S ~[]A, A any](list, other S) S {
	if list == nil {
		return other
	}
	return list
}

// Add is list with x at its end, unless x is in it.
func Add[S ~[]A, A comparable](list S, x A) S {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// Set is what is in list, in order and without doubles, in a list of its own.
func Set[S ~[]A, A cmp.Ordered](list S) S {
	set := slices.Clone(list)
	slices.Sort(set)
	return slices.Compact(set)
}
