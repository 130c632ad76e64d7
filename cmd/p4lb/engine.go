package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane"
)

// An engine says how the embedded switch runs programs: as machine code where
// program and machine allow it, or with the closures that are the reference.
type engine string

const (
	engineAuto     engine = "auto"
	engineClosures engine = "closures"
)

// addFlag adds --engine to a verb that runs a program.
func (e *engine) addFlag(cmd *cobra.Command) {
	*e = engineAuto
	cmd.Flags().Var(e, "engine", "run the program as machine code where that can be done (auto), or with the reference engine (closures)")
	completeWith(cmd, "engine", []string{string(engineAuto), string(engineClosures)})
}

// Set is part of pflag.Value.
func (e *engine) Set(s string) error {
	switch *e = engine(s); *e {
	case engineAuto, engineClosures:
		return nil
	}
	return errors.New("want auto or closures")
}

// String is part of pflag.Value.
func (e *engine) String() string { return string(*e) }

// Type is part of pflag.Value.
func (e *engine) Type() string { return "ENGINE" }

// load links a program, BMv2 JSON, for this engine.
func (e *engine) load(program []byte, o dataplane.Options) (*dataplane.Switch, error) {
	config, err := bmv2.Load(program)
	if err != nil {
		return nil, err
	}
	o.Closures = *e == engineClosures
	return dataplane.New(config, o)
}
