package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/network/hosts"
)

func newDoctor(c *cli.Console) *cobra.Command {
	var form cli.Format
	cmd := &cobra.Command{
		Use:   "doctor [-o FORMAT]",
		Short: "Check the requirements of p4lb's features on this machine",
		Long: `Doctor lists the tasks of p4lb and reports whether each works on this machine. For
the others it names the missing program or permission. Generating, compiling,
testing and comparing programs works everywhere.`,
		Example: `  p4lb doctor
  p4lb doctor -o json`,
		Args: cli.WantArgs(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			found := []finding{
				{"generate, compile and test programs", true, "p4lb gen, compile, test, lint"},
				{"compare schemes in virtual time", true, fmt.Sprintf("p4lb lab, cores: %d", runtime.NumCPU())},
				{"deploy switches in this process", true, "p4lb deploy --target embedded"},
			}
			live := finding{Task: "deploy a network with hosts, and send traffic", Works: true, With: "p4lb deploy, exec, traffic: as root"}
			if err := hosts.Possible(); err != nil {
				live.Works, live.With = false, err.Error()
			} else if !hosts.Capable() {
				live.With = "p4lb deploy, exec, traffic: without root, in a user namespace"
			}
			found = append(found, live,
				needs("deploy to BMv2", "p4lb deploy --target bmv2", hosts.Capable(), "root", "simple_switch_grpc", "ip"),
				finding{"deploy to a Tofino or any P4Runtime switch", true, "p4lb deploy --target tofino or p4runtime, to addresses in the topology"},
				needs("compare with BMv2, packet by packet", "p4lb bench, conformance", true, "", "simple_switch"),
				needs("compare with p4c", "p4lb conformance", true, "", "p4c-bm2-ss"),
				needs("run sweeps on a cluster with Slurm", "p4lb lab submit --on slurm", true, "", "sbatch"),
			)
			rows := cli.Grid{{"TASK", "WORKS", "WITH"}}
			for _, f := range found {
				works := "no"
				if f.Works {
					works = "yes"
				}
				rows = append(rows, []string{f.Task, works, f.With})
			}
			return cli.Show(c.Out, form, rows, found)
		},
	}
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

// A finding reports whether a task works on this machine, and with which
// command, or else the missing requirements.
type finding struct {
	Task  string `json:"task"`
	Works bool   `json:"works"`
	With  string `json:"with"`
}

// needs returns the finding of a task that requires programs on PATH, and a
// right if allowed is false.
func needs(task, by string, allowed bool, right string, programs ...string) finding {
	f := finding{Task: task, Works: true, With: by}
	var missing []string
	if !allowed {
		missing = append(missing, right)
	}
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name+" on PATH")
		}
	}
	if len(missing) > 0 {
		f.Works, f.With = false, "needs "+strings.Join(missing, ", ")
	}
	return f
}
