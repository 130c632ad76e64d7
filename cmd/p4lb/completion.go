package main

import (
	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
)

func newCompletion(c *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for a shell",
		Long:  "Completion prints a script that enables a shell to complete verbs, flags and file names.",
		Example: `  source <(p4lb completion bash)
  p4lb completion fish > ~/.config/fish/completions/p4lb.fish`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cli.WantArgs(1, 1, "one shell: bash, zsh, fish or powershell"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(c.Out, true)
			case "zsh":
				return root.GenZshCompletion(c.Out)
			case "fish":
				return root.GenFishCompletion(c.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(c.Out)
			}
			return cli.UsageError(cmd, "no completion for %q: want bash, zsh, fish or powershell", args[0])
		},
	}
}
