package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
)

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "Explain a verb",
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return cli.UsageError(cmd.Root(), "there is no verb %q", strings.Join(args, " "))
			}
			return verb.Help()
		},
	}
}

// help prints the help of a verb: the first paragraph of its description, the usage
// line and the examples, then the other paragraphs, the verbs below it and the flags.
func help(cmd *cobra.Command, _ []string) {
	summary, details := cutSummary(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)))
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", summary, cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if details != "" {
		fmt.Fprintf(&b, "\n%s\n", details)
	}
	if cmd.HasAvailableSubCommands() {
		listVerbs(&b, cmd)
	}
	own, shared := cmd.LocalFlags(), cmd.InheritedFlags()
	if !cmd.HasParent() {
		own, shared = shared, own
	}
	own.SortFlags, shared.SortFlags = false, false
	if own.HasAvailableFlags() {
		titles, sets := cli.GroupedFlags(own)
		for _, title := range titles {
			fmt.Fprintf(&b, "\n%s:\n%s", cmp.Or(title, flagsTitle(titles)), described(sets[title]))
		}
	}
	fmt.Fprintf(&b, "\nFlags of every verb:\n%s", described(shared))
	if !cmd.HasParent() {
		fmt.Fprintf(&b, "\n%s VERB --help describes a verb.\n", cmd.Name())
	}
	io.WriteString(cmd.OutOrStdout(), b.String())
}

// cutSummary cuts a description after its first paragraph, or after the example that
// this paragraph announces by a colon.
func cutSummary(long string) (summary, details string) {
	summary, details, _ = strings.Cut(long, "\n\n")
	if strings.HasSuffix(summary, ":") {
		example, rest, _ := strings.Cut(details, "\n\n")
		summary, details = summary+"\n\n"+example, rest
	}
	return summary, details
}

// flagsTitle returns the title of flags without a group.
func flagsTitle(titles []string) string {
	if len(titles) > 1 {
		return "Other flags"
	}
	return "Flags"
}

// listVerbs prints the verbs of cmd below the titles of their groups.
func listVerbs(w io.Writer, cmd *cobra.Command) {
	title := ""
	for _, verb := range cmd.Commands() {
		if !verb.IsAvailableCommand() {
			continue
		}
		if next := cmp.Or(verb.GroupID, "Verbs"); next != title {
			title = next
			fmt.Fprintf(w, "\n%s:\n", title)
		}
		fmt.Fprintf(w, "  %-*s  %s\n", verb.NamePadding(), verb.Name(), verb.Short)
	}
}

// described returns the lines of flags with their descriptions. It replaces the
// names of Go types by words for users.
func described(flags *pflag.FlagSet) string {
	typed := regexp.MustCompile(`(?m)^( +(?:-\w, )?--[\w-]+ )(string|int|uint|ints|duration)\b`)
	return typed.ReplaceAllStringFunc(flags.FlagUsages(), func(found string) string {
		m := typed.FindStringSubmatch(found)
		return m[1] + fmt.Sprintf("%-*s", len(m[2]), valueName(m[2]))
	})
}

// valueName returns the user's word for the Go type of a flag.
func valueName(typed string) string {
	switch typed {
	case "string":
		return "WORD"
	case "int", "uint", "ints":
		return "N"
	case "duration":
		return "TIME"
	}
	return typed
}
