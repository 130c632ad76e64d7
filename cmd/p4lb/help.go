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

// usage prints the part of a help text below the description: usage line,
// examples, verbs and flags.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
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
	_, err := cmd.OutOrStdout().Write([]byte(b.String()))
	return err
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
