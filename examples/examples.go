// Package examples holds P4 programs to read, compile and run: each NAME.p4
// with the packets that it is tried on in NAME.stf.
package examples

import "embed"

// FS holds the programs and their packet tests.
//
//go:embed *.p4 *.stf own
var FS embed.FS

//go:embed demo.yaml lab.yaml worlds.yaml qall-hosts.yaml
var experiments embed.FS

// Experiments returns experiments for the simulator, by name.
func Experiments() map[string]string {
	list := map[string]string{}
	for _, name := range []string{"demo", "lab", "worlds", "qall-hosts"} {
		text, err := experiments.ReadFile(name + ".yaml")
		if err != nil {
			panic(err) // it is embedded
		}
		list[name] = string(text)
	}
	return list
}
