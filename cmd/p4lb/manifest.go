package main

import (
	"github.com/spf13/cobra"
)

func newManifest(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "manifest VERB", Short: "Manifests"}
	cmd.AddCommand(newManifestInit(c))
	return cmd
}
