package cli

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// TestGroupFlags: groups come in the order of their first flags, and flags
// without a group last.
func TestGroupFlags(t *testing.T) {
	cmd := &cobra.Command{}
	for _, name := range []string{"a", "b", "c", "d"} {
		cmd.Flags().Bool(name, false, "")
	}
	cmd.Flags().SortFlags = false
	GroupFlags(cmd, FlagGroup{"Two", []string{"d", "b"}}, FlagGroup{"One", []string{"c"}})
	titles, sets := GroupedFlags(cmd.Flags())
	if want := []string{"Two", "One", ""}; !slices.Equal(titles, want) {
		t.Errorf("the groups are %q, want %q", titles, want)
	}
	if sets["Two"].Lookup("b") == nil || sets["Two"].Lookup("d") == nil || sets["One"].Lookup("c") == nil || sets[""].Lookup("a") == nil {
		t.Error("a flag is in the wrong group")
	}
}
