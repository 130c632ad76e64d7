package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"
)

func newDoctor(c *cli) *cobra.Command {
	var form format
	cmd := &cobra.Command{
		Use:   "doctor [-o FORMAT]",
		Short: "Say what is on this machine and what that makes possible",
		Long: `Doctor looks for programs and rights that p4lb can use where they are there.
Nothing it looks for is needed to compile programs or to test them on packets.`,
		Args: wantArgs(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			found := examine()
			rows := grid{{"WHAT", "FOUND", "MAKES POSSIBLE"}}
			for _, f := range found {
				rows = append(rows, []string{f.Name, orNone(f.Found), f.Use})
			}
			return show(c.out, form, rows, found)
		},
	}
	addFormat(cmd, &form, formatTable, formatJSON, formatCSV)
	return cmd
}

// A finding is one thing that doctor looked for; Found is empty where it is
// not there.
type finding struct {
	Name  string `json:"name"`
	Found string `json:"found"`
	Use   string `json:"makes_possible"`
}

func examine() []finding {
	return []finding{
		{"cores", fmt.Sprint(runtime.NumCPU()), "conformance runs that many programs at once"},
		{"p4c", firstInPath("p4c-bm2-ss", "p4c"), "comparing its output with that of p4lb compile"},
		{"BMv2", firstInPath("simple_switch_grpc", "simple_switch"), "running the JSON of p4lb compile on the reference switch; p4lb deploy --target bmv2, if it is simple_switch_grpc"},
		{"network namespaces", namespaces(), "switches and hosts joined by veth pairs on this machine, as p4lb deploy --target bmv2 does"},
		{"iproute2", firstInPath("ip"), "p4lb deploy --target bmv2, and commands on its hosts: ip netns exec"},
	}
}

// firstInPath is the place of the first program that can be found.
func firstInPath(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// namespaces says by what right this process could make network namespaces.
func namespaces() string {
	if _, err := os.Stat("/proc/self/ns/net"); err != nil {
		return ""
	}
	if os.Geteuid() == 0 {
		return "root"
	}
	return ""
}

func orNone(s string) string {
	if s == "" {
		return "no"
	}
	return s
}
