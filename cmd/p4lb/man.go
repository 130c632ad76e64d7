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
		Hidden: true, // packages have them; a user has --help
		Long: `Man writes a manual page for each verb into the folder DIR, which is made if need
be: p4lb.1, p4lb-gen.1 and so on. They say what --help says.`,
		Args: cli.WantArgs(1, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return fmt.Errorf("making the folder %s: %w", args[0], plain.Bare(err))
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

// allVerbs are a command and those below it, but for the hidden ones.
func allVerbs(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			list = append(list, allVerbs(sub)...)
		}
	}
	return list
}

// manPage is the help of a verb in the macros of man(7). It has no date, so that
// it changes with the help alone.
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
	b.WriteString(".SH EXIT STATUS\n0 done, 1 the input or the request is wrong, 2 usage, 3 a switch or the network refused or vanished, 4 interrupted.\n")
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

// paragraphs keeps what is indented as it stands, and lets the rest flow.
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

// roff escapes text: hyphens that are to be typed, and lines that begin like a
// request.
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
