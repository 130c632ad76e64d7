package p4lb

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Setup describes an experiment as Go values. Its Text is the Text of an Experiment. Zero
// values have the defaults of experiment files; only Schemes has none.
//
// The keys of files are documented in docs/formats.md and by p4lb lab run --help. A key without
// a field here can be appended to Text as a line of YAML.
type Setup struct {
	Name      string     `key:"name"`
	Topology  string     `key:"topology"`   // a preset such as qall or leaf-spine, or a file of Experiment.Files
	LeafSpine *LeafSpine `key:"leaf-spine"` // a network to generate instead
	FatTree   *FatTree   `key:"fat-tree"`
	IPv6      bool       `key:"ipv6"`

	Schemes []Scheme `key:"schemes"` // rows of the comparison
	Engine  string   `key:"engine"`  // p4, or native: models instead of programs

	Traffic   []Traffic `key:"traffic"`
	Transport string    `key:"transport"` // tcp, dctcp, dcqcn, udp or uec
	Loads     []float64 `key:"loads"`     // above 0, at most 1

	Seeds    int           `key:"seeds"`    // runs of each row at each load, with the seeds 1 to Seeds
	Duration time.Duration `key:"duration"` // flows start within it
	Drain    time.Duration `key:"drain"`    // time for the last flows to end

	Faults  []Fault  `key:"faults"`
	Metrics []string `key:"metrics"` // columns of Table: names of Metrics() or of Experiment.Metrics
	Expect  []string `key:"expect"`  // conditions such as "fct-mean of mine < 0.9 * ecmp": see Results.Checks
}

// LeafSpine is a network of leaves and spines, with links from each leaf to each spine.
type LeafSpine struct {
	Leaves   int           `key:"leaves"`
	Spines   int           `key:"spines"`
	Hosts    int           `key:"hosts"`          // of each leaf
	Rate     int64         `key:"rate,rate"`      // of links between switches, in bit/s
	HostRate int64         `key:"host-rate,rate"` // of links to hosts, in bit/s
	Delay    time.Duration `key:"delay"`          // of a link between switches
	Queue    int           `key:"queue"`          // packets
}

// FatTree is a fat tree of switches with K ports.
type FatTree struct {
	K        int           `key:"k"`
	Hosts    int           `key:"hosts"`
	Rate     int64         `key:"rate,rate"`
	HostRate int64         `key:"host-rate,rate"`
	Delay    time.Duration `key:"delay"`
	Queue    int           `key:"queue"`
}

// A Scheme is a row of an experiment: a name that Build accepts, or the path of a folder or
// manifest, such as ./mine.
type Scheme struct {
	Name  string            `key:"scheme"`
	Label string            `key:"label"` // name of the row; "": Name
	Set   map[string]string `key:"set"`   // parameters, as in Options.Set
	Arch  string            `key:"arch"`  // v1model, tna or t2na; "": v1model
}

// Traffic describes flows between hosts.
type Traffic struct {
	Workload string `key:"workload"` // distribution of sizes: websearch, datamining, webserver, …, or a file
	Size     int64  `key:"size"`     // size of all flows instead, in bytes

	Pattern string   `key:"pattern"` // all-to-all, halves, permutation, incast, pairs, burst or list
	From    []string `key:"from"`    // hosts and leaves, such as h1, h1..h8 and l1; nil: all
	To      []string `key:"to"`      // hosts, leaves and services; nil: all
	Pairs   []string `key:"pairs"`   // for pairs: h1-h9, …
	File    string   `key:"file"`    // for list: a file of flows

	LoadOf string `key:"load-of"` // capacity to which the load refers: hosts or fabric
	Flows  int    `key:"flows"`   // number of flows; 0: as many as start within the duration
	Degree int    `key:"degree"`  // for incast: senders; for burst: flows of a host

	Collective string `key:"collective"` // all-reduce, all-gather, all-to-all, …, with Size as the buffer of a rank
	Repeat     int    `key:"repeat"`     // iterations of the collective

	Transport string `key:"transport"` // of these flows, instead of the experiment's
}

// A Fault is a failure of a link or a switch during a run, or the absence of a server from the pools
// of its services.
type Fault struct {
	At     time.Duration `key:"at"`
	Until  time.Duration `key:"until"`  // 0: the end of the run
	Link   string        `key:"link"`   // such as l1-s2
	Switch string        `key:"switch"` // instead of a link
	Server string        `key:"server"` // instead of a link: a host
	Down   bool          `key:"down"`   // the controller is notified
	Rate   int64         `key:"rate,rate"`
	Drop   float64       `key:"drop"` // share of the packets that the switch drops
}

// Text returns the setup in the format of experiment files, with one key on each line.
func (s Setup) Text() string {
	v := fields(reflect.ValueOf(s))
	for _, maker := range []string{"leaf-spine", "fat-tree"} {
		if m, ok := v[maker]; ok && v["topology"] == nil {
			v["topology"] = map[string]any{maker: m}
			delete(v, maker)
		}
	}
	var b strings.Builder
	t := reflect.TypeFor[Setup]()
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("key"), ",")
		if x, ok := v[key]; ok {
			text, err := json.Marshal(x)
			if err != nil { // infinite loads have no JSON; as words, they are refused by name
				text = fmt.Append(nil, x)
			}
			fmt.Fprintf(&b, "%s: %s\n", key, text)
		}
	}
	return b.String()
}

// fields returns the values of a struct that are not zero, by key.
func fields(v reflect.Value) map[string]any {
	m := map[string]any{}
	for i := range v.NumField() {
		key, kind, _ := strings.Cut(v.Type().Field(i).Tag.Get("key"), ",")
		switch f := v.Field(i); {
		case f.IsZero():
		case kind == "rate":
			m[key] = fabric.Rate(f.Int()).String()
		default:
			m[key] = fileValue(f)
		}
	}
	return m
}

// fileValue returns a value as encoding/json writes it into a file.
func fileValue(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		return fileValue(v.Elem())
	case reflect.Struct:
		return fields(v)
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = fileValue(v.Index(i))
		}
		return list
	}
	if d, ok := v.Interface().(time.Duration); ok {
		return fabric.FormatDelay(d)
	}
	return v.Interface()
}

// A Metric is a value that a run measures.
type Metric struct {
	Name    string
	Unit    string // "": none
	Meaning string
	Higher  bool // larger values are better
	// ByClass reports whether the metric also exists for short, medium and long flows, as in
	// fct-p99:short.
	ByClass bool
}

// Metrics returns the metrics that each run measures if they apply to it.
func Metrics() []Metric {
	return lists.Map(spec.Metrics(), func(m spec.Metric) Metric { return Metric{m.Name, m.Unit, m.About, m.Higher, m.ByClass} })
}
