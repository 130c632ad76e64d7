package lists

import (
	"slices"
	"strconv"
	"testing"
)

func TestMap(t *testing.T) {
	if got := Map([]int{3, 1, 2}, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("got %q", got)
	}
	if got := Map([]int{}, strconv.Itoa); got != nil {
		t.Errorf("got %q of none, want nil", got)
	}
}

func TestFilterAndFirst(t *testing.T) {
	list := []int{1, 2, 3, 4}
	even := func(n int) bool { return n%2 == 0 }
	if got := Filter(list, even); !slices.Equal(got, []int{2, 4}) || list[0] != 1 {
		t.Errorf("got %v of %v", got, list)
	}
	if got := Filter(list[:1], even); got != nil {
		t.Errorf("got %v, want nil", got)
	}
	if got := First(list, even); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
	if got := First(list[:1], even); got != 0 {
		t.Errorf("got %d of none, want 0", got)
	}
}
