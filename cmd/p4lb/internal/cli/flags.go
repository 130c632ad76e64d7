package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/text/units"
)

// CompleteWith enables shell completion of a flag with the given words.
func CompleteWith(cmd *cobra.Command, flag string, words []string) {
	CompleteLater(cmd, flag, func() []string { return words })
}

// CompleteLater enables shell completion of a flag with words that it computes
// on request.
func CompleteLater(cmd *cobra.Command, flag string, words func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // impossible: the flag has just been defined
	}
}

// AddArchFlag adds the flag --arch to cmd.
func AddArchFlag(cmd *cobra.Command, arch *string, usage string) {
	cmd.Flags().StringVar(arch, "arch", "", usage)
	CompleteWith(cmd, "arch", p4.Archs)
}

// WantArch checks the value of --arch.
func WantArch(cmd *cobra.Command, arch string) error {
	if arch != "" && !slices.Contains(p4.Archs, arch) {
		return UsageError(cmd, "--arch %s: want %s", arch, strings.Join(p4.Archs, ", "))
	}
	return nil
}

// AddRoundsFlag adds the flag --rounds to cmd, which limits the rounds of a
// packet.
func AddRoundsFlag(cmd *cobra.Command, rounds *int) {
	cmd.Flags().IntVar(rounds, "rounds", dataplane.DefaultRounds, "drop a packet and its copies after `N` resubmissions, recirculations and clones")
}

// AddPcapFlag adds the flag --pcap to cmd, which captures all ports.
func AddPcapFlag(cmd *cobra.Command, dir *string, target string) {
	cmd.Flags().StringVar(dir, "pcap", "", target+"write a capture of the packets at each port into `DIR`")
}

// AddPlaintext adds the flag that permits remote connections to a server
// without encryption.
func AddPlaintext(cmd *cobra.Command, to *bool, what string) {
	cmd.Flags().BoolVar(to, "remote-plaintext", false,
		"serve "+what+" at addresses outside this machine: anyone can connect, without encryption")
}

// StaysHere rejects an address outside this machine for a server without
// encryption and passwords, unless allowed is set.
func StaysHere(flag, what, address string, allowed bool) error {
	if allowed || !fabric.Remote(address) {
		return nil
	}
	return Hinted(fmt.Errorf("%s %s: other machines could connect, and %s has neither encryption nor passwords", flag, address, what),
		"serve at 127.0.0.1 and connect through a tunnel, or add --remote-plaintext")
}

// A MemorySize is a flag value in bytes.
type MemorySize struct {
	Bytes int64
	Given bool
}

// Set parses a size. A number without unit is in bytes.
func (m *MemorySize) Set(text string) error {
	v, ok := units.Sizes.Parse(text)
	if !ok {
		v, ok = units.Sizes.Parse(text + "B")
	}
	if !ok {
		return errors.New("want bytes such as 500MB or 4GiB")
	}
	m.Bytes, m.Given = v, true
	return nil
}

// String returns the number of bytes, or "" if the flag is not set.
func (m *MemorySize) String() string {
	if !m.Given {
		return ""
	}
	return strconv.FormatInt(m.Bytes, 10)
}

// Type returns the placeholder of the value in the help.
func (m *MemorySize) Type() string { return "size" }

// An Engine selects how the embedded switch executes programs: as machine code
// if program and machine support it, or with closures, the reference
// implementation.
type Engine string

const (
	engineAuto     Engine = "auto"
	EngineClosures Engine = "closures"
)

// AddFlag adds --engine to a verb that runs a program.
func (e *Engine) AddFlag(cmd *cobra.Command) {
	*e = engineAuto
	cmd.Flags().Var(e, "engine", "run the program as machine code if possible (auto), or with the reference engine (closures)")
	CompleteWith(cmd, "engine", []string{string(engineAuto), string(EngineClosures)})
}

// Set implements pflag.Value.
func (e *Engine) Set(s string) error {
	switch *e = Engine(s); *e {
	case engineAuto, EngineClosures:
		return nil
	}
	return errors.New("want auto or closures")
}

// String implements pflag.Value.
func (e *Engine) String() string { return string(*e) }

// Type implements pflag.Value.
func (e *Engine) Type() string { return "ENGINE" }

// Load links a program in BMv2 JSON for this engine.
func (e *Engine) Load(program []byte, o dataplane.Options) (*dataplane.Switch, error) {
	config, err := bmv2.Load(program)
	if err != nil {
		return nil, err
	}
	o.Closures = *e == EngineClosures
	return dataplane.New(config, o)
}
