// Package lists has functions that the standard library's slices package lacks.
package lists

import (
	"cmp"
	"slices"
)

// Map returns f of each element in order, or nil for an empty list.
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

// Filter returns a new list of the elements for which keep returns true, in
// order, or nil if there are none.
func Filter[A any](list []A, keep func(A) bool) []A {
	var out []A
	for _, x := range list {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// First returns the first element for which ok returns true, or the zero value.
func First[A any](list []A, ok func(A) bool) (none A) {
	if i := slices.IndexFunc(list, ok); i >= 0 {
		return list[i]
	}
	return none
}

// Or returns list, or other if list is nil.
func Or[S ~[]A, A any](list, other S) S {
	if list == nil {
		return other
	}
	return list
}

// Add appends x to list unless list contains it.
func Add[S ~[]A, A comparable](list S, x A) S {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}

// Set returns the elements of list, sorted and without duplicates, in a new
// list.
func Set[S ~[]A, A cmp.Ordered](list S) S {
	set := slices.Clone(list)
	slices.Sort(set)
	return slices.Compact(set)
}
