package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// resultVersion is raised by every change to results of runs: in the simulator, the switches, a
// model or the metrics. It is part of every key, so results of an older binary are not reused.
// TestResultVersion fails if recorded runs differ although the version is the same.
const resultVersion = 10

// Key returns the digest of everything that determines the result of a run. Runs with
// the same key have the same bytes on any machine. The key covers the contents of files
// but not their names, and no labels.
func (j *Job) Key() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "result-version=%d\n", resultVersion)
	if j.serve != nil {
		fmt.Fprintf(&b, "served every %v\n", j.serve.Every)
		if j.serve.BfRt {
			b.WriteString("over BfRt\n")
		}
	}
	spec.WriteForm(&b, "", j.decisive())
	j.setup.once.Do(func() { j.setup.contents = j.contents() })
	b.WriteString(j.setup.contents)
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:16])
}

// contents returns the part of the key that all runs of a row in a case share: network, workloads
// and programs.
func (j *Job) contents() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "topology=%q\n", j.setup.topo.YAML())
	for i, text := range j.workloads() {
		fmt.Fprintf(&b, "workload[%d]=%q\n", i, text)
	}
	for _, role := range slices.Sorted(maps.Keys(j.setup.byRole)) {
		p := j.setup.byRole[role]
		fmt.Fprintf(&b, "program{%s}=%s %x\n", role, p.Digest, sha256.Sum256(machineForm(&p.Manifest)))
	}
	return b.String()
}

// explanatoryKeys lists the keys of a manifest that do not affect runs: explanations and file names.
var explanatoryKeys = []string{"meaning", "title", "what", "why", "error", "packet", "symbol", "program", "includes", "provenance"}

// machineForm returns a manifest without its explanations, with sorted keys.
func machineForm(m *manifest.Manifest) []byte {
	text, err := json.Marshal(m)
	var tree any
	if err == nil {
		err = json.Unmarshal(text, &tree)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				if slices.Contains(explanatoryKeys, k) {
					delete(v, k)
				} else {
					strip(inner)
				}
			}
		case []any:
			for _, inner := range v {
				strip(inner)
			}
		}
	}
	strip(tree)
	if err == nil {
		text, err = json.Marshal(tree)
	}
	if err != nil {
		panic(err) // plain data can always be encoded
	}
	return text
}

// A decisive holds the parts of an experiment that determine a run, besides its
// topology, workloads and programs.
type decisive struct {
	spec.Setting `yaml:",inline"`
	Scheme       spec.Scheme       `yaml:"scheme"`
	Set          map[string]string `yaml:"parameters"`
	Classes      []spec.Class      `yaml:"classes"`
	Interval     spec.Time         `yaml:"interval"`
	Latency      spec.Time         `yaml:"latency"`
	Probes       string            `yaml:"probes"`
	Observe      *spec.Observing   `yaml:"observe"`
	Load         float64           `yaml:"load"`
	Seed         uint64            `yaml:"seed"`
	World        string            `yaml:"world"`
	Rounds       int               `yaml:"rounds"`
}

func (j *Job) decisive() decisive {
	d := decisive{
		Setting: j.Case.Setting, Scheme: *j.Scheme, Set: j.setup.parameters(), Classes: j.x.Classes, Interval: j.x.Interval,
		Latency: j.x.Latency, Probes: j.x.Probes, Observe: j.x.Observe, Load: j.Load, Seed: j.Seed, World: j.world, Rounds: j.rounds,
	}
	if d.Rounds == dataplane.DefaultRounds {
		d.Rounds = 0
	}
	d.Setting.ClearDefaults()
	if !d.Uses("uec") {
		d.Switches.ECN = max(0, d.Switches.ECN)
	}
	// The contents of named files are already in the key.
	d.Topology = spec.Network{}
	d.Traffic = slices.Clone(d.Traffic)
	for i := range d.Traffic {
		t := &d.Traffic[i]
		t.Workload, t.File, t.CommGroups, t.Cut = "", "", "", max(0, t.Cut)
		if t.LoadOf == spec.OfHosts {
			t.LoadOf = ""
		}
	}
	d.Scheme.Label, d.Scheme.Coeffs, d.Scheme.Set = "", "", nil
	if j.Scheme.Made().Native() != nil {
		d.Scheme.Scheme = "" // the value is the name of a file whose content is in the key
	}
	return d
}

// connections lists the connections that the flows share, because a flow list does not contain
// them. It returns "" if there are none.
func connections(flows []spec.Flow) string {
	if !slices.ContainsFunc(flows, func(f spec.Flow) bool { return f.Connection > 0 }) {
		return ""
	}
	var b bytes.Buffer
	for _, f := range flows {
		fmt.Fprintf(&b, "%d ", f.Connection)
	}
	return b.String()
}

// workloads returns the distributions and flow lists in full precision.
func (j *Job) workloads() []string {
	var list []string
	for _, t := range j.Case.Traffic {
		switch {
		case t.Distribution() != nil:
			list = append(list, fmt.Sprint(t.Distribution().Points))
		case t.Listed() != nil:
			list = append(list, string(spec.FlowList(t.Listed(), j.setup.topo)))
			if c := connections(t.Listed()); c != "" {
				list = append(list, c)
			}
		}
	}
	return list
}
