package controller

import (
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// The signatures of this package use types from internal packages. These aliases
// make them available to other modules.

// Plan is the complete configuration of a network: for each switch its
// pipeline, table entries, groups, sessions and register values.
type Plan = plan.Plan

// Pipeline is a compiled program with its P4Info and manifest. All switches with
// the same role share it.
type Pipeline = plan.Pipeline

// Target gives access to the switches of a network: it starts or finds them and
// returns their addresses.
type Target = target.Target

// Endpoint is the address of one switch, with its interfaces and credentials.
type Endpoint = target.Endpoint

// Report is the result of a deployment, switch by switch.
type Report = report.Report

// SwitchReport is the result for one switch: its changes and its error.
type SwitchReport = report.Switch

// ElectionID decides which of several controllers is primary: the one with the
// largest id.
type ElectionID = primary.ElectionID

// Registers reads and writes the registers of one switch by name.
type Registers = registers.Access

// Task is periodic work of the controller, such as sending probes.
type Task = task.Task

// A Topology has the switches, hosts and links of a network.
type Topology = fabric.Topology
