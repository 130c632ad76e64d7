package p4app

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Project is a network with a program and entries for each switch.
type Project struct {
	File     string
	Topology *fabric.Topology
	Notes    []string // information that a topology cannot represent
	Switches []Switch // in the order of the topology
	Hosts    []Host   // in the order of the topology
}

// A Switch describes the program of a switch.
type Switch struct {
	Name     string
	Program  string   // a P4 or compiled program; empty: none is named
	Entries  []string // files
	CPUPort  int      // 0: none
	Priority int      // number of queues per port; 0: one
}

// A Host describes the initial state of a host.
type Host struct {
	Name     string
	Address  string   // including the prefix length
	Commands []string // shell commands
	Gateway  string   // empty: the default of its switch
}

// form contains the parts of the files that package fabric does not read.
type form struct {
	Source   string          `json:"p4_src"`  // p4-utils
	Old      string          `json:"program"` // older versions of p4-utils
	Topology json.RawMessage `json:"topology"`
	formTopology
}

type formTopology struct {
	Hosts map[string]struct {
		IP       string   `json:"ip"`
		Commands []string `json:"commands"`
		Gateway  string   `json:"gw"`
		Default  string   `json:"defaultRoute"`
	} `json:"hosts"`
	Switches map[string]struct {
		Program  string `json:"program"`
		Source   string `json:"p4_src"`
		Runtime  string `json:"runtime_json"`
		CLI      string `json:"cli_input"`
		CPUPort  any    `json:"cpu_port"`
		Priority int    `json:"priority_queues_num"`
		Queues   int    `json:"priority_queues"` // another name of priority_queues_num
	} `json:"switches"`
}

// Read reads a project. Files that it names are searched for in its folder and
// in the parent folder, from which the tutorials are started. programs override
// the programs of the project, by name of the switch; the empty name stands for
// all other switches.
func Read(file string, programs map[string]string, imports fabric.Imports) (*Project, error) {
	text, err := plain.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	p := &Project{File: file}
	if p.Topology, p.Notes, err = imports.Import(file, text); err != nil {
		return nil, err
	}
	var f form
	if err := json.Unmarshal(text, &f); err != nil {
		line, why := plain.JSONError(text, err)
		return nil, &lineError{file, line, why.Error()}
	}
	if len(f.Topology) > 0 {
		if err := json.Unmarshal(f.Topology, &f.formTopology); err != nil {
			line, why := plain.JSONError(f.Topology, err)
			return nil, &lineError{file, bytes.Count(text[:bytes.Index(text, f.Topology)], []byte{'\n'}) + line, why.Error()}
		}
	}
	if left := leftOut(text); len(left) > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%s: ignored: %s", file, strings.Join(left, ", ")))
	}
	for _, s := range p.Topology.Switches {
		x := f.Switches[s.Name]
		sw := Switch{Name: s.Name, Priority: cmp.Or(x.Priority, x.Queues)}
		if sw.Program = cmp.Or(programs[s.Name], programs[""]); sw.Program == "" {
			if sw.Program, err = p.program(s.Name, cmp.Or(x.Source, x.Program, f.Source, f.Old)); err != nil {
				return nil, err
			}
		}
		for _, name := range []string{x.Runtime, x.CLI} {
			if name == "" {
				continue
			}
			found, err := p.find("switch "+s.Name, name)
			if err != nil {
				return nil, err
			}
			sw.Entries = append(sw.Entries, found)
		}
		if sw.CPUPort, err = cpuPort(x.CPUPort); err != nil {
			return nil, &lineError{file, 0, fmt.Sprintf("switch %s: %v", s.Name, err)}
		}
		p.Switches = append(p.Switches, sw)
	}
	for name := range programs {
		if name != "" && p.Topology.Switch(name) == nil {
			return nil, &lineError{file, 0, fmt.Sprintf("no switch %s to run %s", name, programs[name])}
		}
	}
	for _, h := range p.Topology.Hosts {
		x := f.Hosts[h.Name]
		p.Hosts = append(p.Hosts, Host{Name: h.Name, Address: x.IP, Commands: x.Commands, Gateway: cmp.Or(x.Gateway, x.Default)})
	}
	return p, nil
}

// taken lists the keys of a project that are read here or by package fabric, and
// the keys for p4-utils' own shell, logs, compiler and processes.
var taken = []string{
	"p4_src", "program", "language", "topology", "hosts", "switches", "links",
	"cli", "enable_log", "compiler", "compiler_module", "switch", "switch_node", "host_node", "topo_module", "mininet_module", "controller_module",
}

// leftOut returns, in order, the keys of a project that have a value but are not
// read.
func leftOut(text []byte) []string {
	var keys map[string]json.RawMessage
	if json.Unmarshal(text, &keys) != nil {
		return nil // Read has reported this error
	}
	maps.DeleteFunc(keys, func(key string, value json.RawMessage) bool {
		return slices.Contains(taken, key) || slices.Contains([]string{"false", "null", `""`, "[]", "{}"}, string(value))
	})
	return slices.Sorted(maps.Keys(keys))
}

// cpuPort returns the port of the controller: in p4-utils, true means 510.
func cpuPort(v any) (int, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case bool:
		if v {
			return 510, nil
		}
		return 0, nil
	case float64, string:
		if port, err := strconv.Atoi(fmt.Sprint(v)); err == nil && port > 0 && port < 512 {
			return port, nil
		}
	}
	return 0, fmt.Errorf("cpu_port %v: want true, or a port from 1 to 511", v)
}

// find returns the path of a file that a project names.
func (p *Project) find(who, name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	dir := filepath.Dir(p.File)
	for _, at := range []string{dir, filepath.Join(dir, "..")} {
		file := filepath.Join(at, name)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", &lineError{p.File, 0, fmt.Sprintf("%s: %s not found: want it in the folder of this file or its parent", who, name)}
}

// program returns the source of a program. The tutorials name the output of
// their Makefile, or nothing if the folder has only one program.
func (p *Project) program(sw, name string) (string, error) {
	if name != "" {
		base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		for _, source := range []string{name, filepath.Join(filepath.Dir(name), "..", base+".p4"), base + ".p4"} {
			if filepath.Ext(source) != ".p4" {
				continue
			}
			if file, err := p.find(sw, source); err == nil {
				return file, nil
			}
		}
		return p.find("switch "+sw, name)
	}
	sources := map[string]bool{}
	dir := filepath.Dir(p.File)
	for _, at := range []string{dir, filepath.Join(dir, "..")} {
		list, _ := filepath.Glob(filepath.Join(at, "*.p4"))
		for _, file := range list {
			sources[filepath.Clean(file)] = true
		}
		if len(list) > 0 {
			break
		}
	}
	list := slices.Sorted(maps.Keys(sources))
	if len(list) == 1 {
		return list[0], nil
	}
	if len(list) == 0 {
		return "", &lineError{p.File, 0, fmt.Sprintf("switch %s: no program is named, and there is none in the folder: name one with --program", sw)}
	}
	return "", &lineError{p.File, 0, fmt.Sprintf("switch %s: no program is named, and there are %s: name one with --program", sw, strings.Join(list, " and "))}
}

// WithIP translates commands of net-tools, which the tutorials' hosts use, to
// iproute2: route add default gw ADDRESS, and arp -s ADDRESS MAC. Other
// commands are unchanged.
func WithIP(command string) string {
	words := strings.Fields(command)
	dev := ""
	rest := words[:0:0]
	for i := 0; i < len(words); i++ {
		if (words[i] == "-i" || words[i] == "dev") && i+1 < len(words) {
			dev = " dev " + words[i+1]
			i++
			continue
		}
		rest = append(rest, words[i])
	}
	switch {
	case len(rest) == 5 && rest[0] == "route" && rest[1] == "add" && rest[2] == "default" && rest[3] == "gw":
		return "ip route replace default via " + rest[4] + dev
	case len(rest) == 4 && rest[0] == "arp" && rest[1] == "-s":
		return "ip neigh replace " + rest[2] + " lladdr " + rest[3] + " nud permanent" + dev
	case len(rest) > 2 && rest[0] == "ip" && rest[1] == "route" && rest[2] == "add":
		return strings.Replace(command, "route add", "route replace", 1)
	}
	return command
}
