package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A FlagGroup is a part of a verb's flags with a title in the help.
type FlagGroup struct {
	Title string
	Flags []string
}

const groupAnnotation = "p4lb-group"

// GroupFlags makes the help list the flags of a verb in groups. Flags in no
// group come last.
func GroupFlags(cmd *cobra.Command, groups ...FlagGroup) {
	for _, g := range groups {
		for _, name := range g.Flags {
			if err := cmd.Flags().SetAnnotation(name, groupAnnotation, []string{g.Title}); err != nil {
				panic(err) // a flag of the group is missing
			}
		}
	}
}

// GroupedFlags returns the flags in their groups, in order of the definition of
// the first flag of each group.
func GroupedFlags(flags *pflag.FlagSet) (titles []string, sets map[string]*pflag.FlagSet) {
	sets = map[string]*pflag.FlagSet{}
	flags.VisitAll(func(f *pflag.Flag) {
		title := ""
		if t := f.Annotations[groupAnnotation]; len(t) > 0 {
			title = t[0]
		}
		if sets[title] == nil {
			titles = append(titles, title)
			sets[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			sets[title].SortFlags = false
		}
		sets[title].AddFlag(f)
	})
	if i := slices.Index(titles, ""); i >= 0 {
		titles = append(slices.Delete(titles, i, i+1), "")
	}
	return titles, sets
}
