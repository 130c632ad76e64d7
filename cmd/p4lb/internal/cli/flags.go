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

// CompleteWith lets a shell complete a flag with words.
func CompleteWith(cmd *cobra.Command, flag string, words []string) {
	CompleteLater(cmd, flag, func() []string { return words })
}

// CompleteLater computes the words when a shell asks for them.
func CompleteLater(cmd *cobra.Command, flag string, words func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag has just been defined
	}
}

// AddArchFlag gives cmd the flag that names an architecture.
func AddArchFlag(cmd *cobra.Command, arch *string, meaning string) {
	cmd.Flags().StringVar(arch, "arch", "", meaning+": the `ARCH` v1model, tna or t2na")
	CompleteWith(cmd, "arch", p4.Archs)
}

// WantArch checks the flag.
func WantArch(cmd *cobra.Command, arch string) error {
	if arch != "" && !slices.Contains(p4.Archs, arch) {
		return UsageError(cmd, "--arch %s: want %s", arch, strings.Join(p4.Archs, ", "))
	}
	return nil
}

// AddRoundsFlag gives cmd the flag that bounds a packet's rounds.
func AddRoundsFlag(cmd *cobra.Command, rounds *int) {
	cmd.Flags().IntVar(rounds, "rounds", dataplane.DefaultRounds, "drop a packet and its copies after `N` resubmissions, recirculations and clones")
}

// AddPcapFlag adds the flag for captures of all ports.
func AddPcapFlag(cmd *cobra.Command, dir *string, target string) {
	cmd.Flags().StringVar(dir, "pcap", "", target+"write a capture of each port's packets into `DIR`")
}

// AddPlaintext adds the flag by which a server without encryption may be reached
// from elsewhere.
func AddPlaintext(cmd *cobra.Command, to *bool, what string) {
	cmd.Flags().BoolVar(to, "remote-plaintext", false,
		"serve "+what+" beyond this machine: in the clear, to whoever reaches the address")
}

// StaysHere refuses an address beyond this machine for a server that has neither
// encryption nor passwords, unless that is wanted.
func StaysHere(flag, what, address string, wanted bool) error {
	if wanted || !fabric.Remote(address) {
		return nil
	}
	return Hinted(fmt.Errorf("%s %s leaves this machine, and %s has neither encryption nor passwords", flag, address, what),
		"serve at 127.0.0.1 and reach it through a tunnel, or say --remote-plaintext")
}

// A MemorySize is a number of bytes on the command line.
type MemorySize struct {
	Bytes int64
	Given bool
}

// Set reads a size; a number alone is one of bytes.
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

// String is the size as Set reads it.
func (m *MemorySize) String() string {
	if !m.Given {
		return ""
	}
	return strconv.FormatInt(m.Bytes, 10)
}

// Type names what the flag takes.
func (m *MemorySize) Type() string { return "size" }

// An Engine says how the embedded switch runs programs: as machine code where
// program and machine allow it, or with the closures that are the reference.
type Engine string

const (
	engineAuto     Engine = "auto"
	EngineClosures Engine = "closures"
)

// AddFlag adds --engine to a verb that runs a program.
func (e *Engine) AddFlag(cmd *cobra.Command) {
	*e = engineAuto
	cmd.Flags().Var(e, "engine", "run the program as machine code where that can be done (auto), or with the reference engine (closures)")
	CompleteWith(cmd, "engine", []string{string(engineAuto), string(EngineClosures)})
}

// Set is part of pflag.Value.
func (e *Engine) Set(s string) error {
	switch *e = Engine(s); *e {
	case engineAuto, EngineClosures:
		return nil
	}
	return errors.New("want auto or closures")
}

// String is part of pflag.Value.
func (e *Engine) String() string { return string(*e) }

// Type is part of pflag.Value.
func (e *Engine) Type() string { return "ENGINE" }

// Load links a program, BMv2 JSON, for this engine.
func (e *Engine) Load(program []byte, o dataplane.Options) (*dataplane.Switch, error) {
	config, err := bmv2.Load(program)
	if err != nil {
		return nil, err
	}
	o.Closures = *e == EngineClosures
	return dataplane.New(config, o)
}
