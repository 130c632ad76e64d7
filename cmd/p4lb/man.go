package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/text/plain"
)

func newMan(c *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages",
		Hidden: true, // only for packaging; users have --help
		Long: `Man writes the help of each verb as a manual page into the folder DIR, which it
creates if missing: p4lb.1, p4lb-gen.1 and so on.`,
		Args: cli.WantArgs(1, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return fmt.Errorf("creating the folder %s: %w", args[0], plain.Bare(err))
			}
			var out cli.Outputs
			defer out.Discard()
			for _, verb := range allVerbs(cmd.Root()) {
				name := strings.ReplaceAll(verb.CommandPath(), " ", "-") + ".1"
				if err := out.Stage(filepath.Join(args[0], name), manPage(verb)); err != nil {
					return err
				}
			}
			return c.Finish(&out)
		},
	}
}

// allVerbs returns a command and all verbs below it, without the hidden ones.
func allVerbs(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			list = append(list, allVerbs(sub)...)
		}
	}
	return list
}

// manPage returns the help of a verb in the macros of man(7). It contains no
// date, so it changes only with the help.
func manPage(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"p4lb\" \"User Commands\"\n.SH NAME\n%s \\- %s\n", roff(strings.ToUpper(name)), roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.nf\n%s\n.fi\n", roff(cmd.UseLine()))
	if cmd.Long != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", paragraphs(cmd.Long))
	}
	section := func(title string, set *pflag.FlagSet) {
		if !set.HasAvailableFlags() {
			return
		}
		fmt.Fprintf(&b, ".SH %s\n", title)
		set.VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			value, usage := pflag.UnquoteUsage(f)
			value = valueName(value)
			head := "--" + f.Name
			if f.Shorthand != "" {
				head = "-" + f.Shorthand + ", " + head
			}
			if value != "" {
				head += " " + value
			}
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(head), roff(usage))
		})
	}
	section("OPTIONS", cmd.NonInheritedFlags())
	section("OPTIONS OF EVERY VERB", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	b.WriteString(".SH EXIT STATUS\n0 success, 1 error in the input or the request, 2 error in the command line, 3 refused by or lost connection to a switch or the network, 4 interrupted.\n")
	var also []string
	if cmd.HasParent() {
		also = append(also, strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-"))
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			also = append(also, strings.ReplaceAll(sub.CommandPath(), " ", "-"))
		}
	}
	for i, name := range also {
		if i == 0 {
			b.WriteString(".SH SEE ALSO\n")
		}
		comma := ","
		if i == len(also)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(name), comma)
	}
	return b.Bytes()
}

// paragraphs keeps indented text as it is, and fills the other paragraphs.
func paragraphs(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(part, " ") {
			b.WriteString(".nf\n" + roff(part) + "\n.fi\n")
		} else {
			b.WriteString(roff(part) + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// roff escapes text for man(7): hyphens that users type, and lines that look
// like requests.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
