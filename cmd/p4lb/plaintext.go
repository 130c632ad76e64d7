package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/fabric"
)

// addPlaintext adds the flag by which a server without encryption may be reached
// from elsewhere.
func addPlaintext(cmd *cobra.Command, to *bool, what string) {
	cmd.Flags().BoolVar(to, "remote-plaintext", false,
		"serve "+what+" beyond this machine: in the clear, to whoever reaches the address")
}

// staysHere refuses an address beyond this machine for a server that has neither
// encryption nor passwords, unless that is wanted.
func staysHere(flag, what, address string, wanted bool) error {
	if wanted || !fabric.Remote(address) {
		return nil
	}
	return hinted(fmt.Errorf("%s %s leaves this machine, and %s has neither encryption nor passwords", flag, address, what),
		"serve at 127.0.0.1 and reach it through a tunnel, or say --remote-plaintext")
}
