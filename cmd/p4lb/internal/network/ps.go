package network

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/deployed"
)

// NewPs returns the verb ps.
func NewPs(c *cli.Console) *cobra.Command {
	var form cli.Format
	cmd := &cobra.Command{
		SuggestFor: []string{"list", "ls", "networks"},
		Use:        "ps [-o FORMAT]",
		Short:      "List the networks that you have deployed on this machine",
		Long: `Ps lists your deployments on this machine from all folders: the scheme, the target,
the start time, and the files with state and log. With -o json it also lists the
addresses of every switch.

To use a deployment of another folder, go to that folder, or name the state file:
p4lb inspect --state FILE.`,
		Example: `  p4lb ps
  p4lb ps -o json`,
		Args: cli.WantArgs(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			list, err := deployments(c)
			if err != nil {
				return err
			}
			if len(list) == 0 && form == cli.Table {
				fmt.Fprintln(c.Out, "no networks are deployed")
				return nil
			}
			rows := cli.Grid{{"FOLDER", "TOPOLOGY", "SCHEME", "TARGET", "SWITCHES", "STATUS", "PID", "AGE", "STATE", "LOG"}}
			for _, d := range list {
				pid, log := "-", "-"
				if d.PID != 0 {
					pid = fmt.Sprint(d.PID)
				}
				if d.Log != "" {
					log = d.Log
				}
				rows = append(rows, []string{d.Folder, d.Topology, d.Scheme, d.Target, fmt.Sprint(len(d.Switches)), d.Status, pid, age(d.Began), d.State, log})
			}
			return cli.Show(c.Out, form, rows, list)
		},
	}
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.YAML, cli.CSV)
	return cmd
}

// A deployment is a line of the output of ps.
type deployment struct {
	Folder   string            `json:"folder"`
	Topology string            `json:"topology"`
	Scheme   string            `json:"scheme"`
	Target   string            `json:"target"`
	Status   string            `json:"status"`        // running; unattended: no process runs the switches
	PID      int               `json:"pid,omitempty"` // id of the process that runs it
	Began    time.Time         `json:"began"`
	State    string            `json:"state"`
	Log      string            `json:"log,omitempty"` // log file of a detached deployment
	Switches []deployed.Switch `json:"switches"`
}

// deployments lists the user's deployments. It removes the state of deployments that
// have ended with their process.
func deployments(c *cli.Console) ([]deployment, error) {
	files, err := deployed.States()
	list := []deployment{}
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		n, t, err := deployed.Read(file)
		if err == nil && up(n, file) != nil {
			continue
		}
		pid := 0
		if err == nil {
			pid, err = deployed.Owner(file)
		}
		if err != nil {
			c.Warning("%v", err)
			continue
		}
		d := deployment{
			Folder: n.Folder, Topology: t.Name, Scheme: n.Scheme, Target: n.Target, Status: "running", PID: pid, Began: n.Began, State: file,
			Switches: n.Switches,
		}
		if pid == 0 {
			d.Status = "unattended"
		}
		if _, err := os.Lstat(deployed.LogFile(file)); err == nil {
			d.Log = deployed.LogFile(file)
		}
		for i := range d.Switches {
			d.Switches[i].Manifest = nil
		}
		list = append(list, d)
	}
	return list, nil
}

// age prints the time since something began, in the largest unit that fits.
func age(began time.Time) string {
	d := time.Since(began)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%.0fm", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0fh", d.Hours())
	}
	return fmt.Sprintf("%.0fd", d.Hours()/24)
}
