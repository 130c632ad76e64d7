package codegen

// A Manifest says what a generated program means and needs, so that whoever
// runs it need not know its scheme.
type Manifest struct {
	Scheme      string  `json:"scheme"`
	Title       string  `json:"title"`
	Granularity string  `json:"granularity"`
	Signal      string  `json:"signal"`
	Choice      string  `json:"choice"`
	Guard       string  `json:"guard"`
	Role        string  `json:"role"`
	StatePath   string  `json:"state_path,omitempty"` // recirc, shared or ghost; "" without feedback
	Paths       int     `json:"paths"`                // the largest group
	Parameters  []Value `json:"parameters"`

	Registers []Register `json:"registers"`
	Counters  []Counter  `json:"counters"`
	Tables    []Table    `json:"tables"`
	Headers   []Header   `json:"headers"`

	CloneSessions   []Session     `json:"clone_sessions"`
	MulticastGroups []Multicast   `json:"multicast_groups"`
	VirtualPorts    []VirtualPort `json:"virtual_ports"`
	Tasks           []Task        `json:"tasks"`

	*Hardware // of programs for Tofino
}

// A Register is an array that the program remembers something in.
type Register struct {
	Name    string `json:"name"` // as BMv2 and P4Info know it
	Index   string `json:"index"`
	Size    int    `json:"size"`
	Width   int    `json:"width"`
	Unit    string `json:"unit,omitempty"`
	Scale   int64  `json:"scale,omitempty"`   // the value stands for value/Scale
	Valid   int    `json:"valid,omitempty"`   // this bit set: there is a value below it
	Writer  string `json:"writer"`            // data plane, controller or both
	Initial []Cell `json:"initial,omitempty"` // cells that do not start at 0
	BfRt    string `json:"bfrt,omitempty"`    // the table that BfRt knows it as
	Symbol  string `json:"symbol,omitempty"`
	Meaning string `json:"meaning"`

	Type  string `json:"-" yaml:"type"`  // in the program
	Start string `json:"-" yaml:"start"` // what all cells start with, there
	Local bool   `json:"-" yaml:"local"` // a control declares it
}

// A Counter is an array that the program counts in.
type Counter struct {
	Name    string `json:"name"`
	Index   string `json:"index"`
	Size    int    `json:"size"`
	Unit    string `json:"unit"`
	Meaning string `json:"meaning"`
}

// A Table is filled by the controller.
type Table struct {
	Name    string   `json:"name"`
	Meaning string   `json:"meaning"`
	Keys    []string `json:"keys"`    // with their match kind
	Actions []string `json:"actions"` // with their parameters
	BfRt    string   `json:"bfrt,omitempty"`
}

// A Cell is one of a Register.
type Cell struct {
	Index int   `json:"index"` // -1: all
	Value int64 `json:"value"`
}

// A Header is one that the scheme itself puts on the wire, or sends round
// within the switch.
type Header struct {
	Name      string  `json:"name"`
	EtherType int     `json:"ether_type,omitempty" yaml:"ether_type"` // 0: found otherwise
	Meaning   string  `json:"meaning"`
	Fields    []Field `json:"fields"`
}

// A Field is one of a Header.
type Field struct {
	Name    string `json:"name"`
	Width   int    `json:"width"`
	Meaning string `json:"meaning"`
}

// A Session is a clone session to configure. With PerPort, there is one for
// each port of the switch: Session+port leads to that port.
type Session struct {
	Session int    `json:"session"`
	Port    int    `json:"port,omitempty"`
	PerPort bool   `json:"per_port,omitempty" yaml:"per_port"`
	Bytes   int    `json:"bytes,omitempty"` // a copy is cut to so many
	Meaning string `json:"meaning"`
}

// A Multicast is a group to configure.
type Multicast struct {
	Group   int    `json:"group"`
	PerPort bool   `json:"per_port,omitempty" yaml:"per_port"` // Group+port is used for what came in there
	Members string `json:"members"`
	Meaning string `json:"meaning"`
}

// A VirtualPort is one that no interface may be attached to.
type VirtualPort struct {
	Port    int    `json:"port"`
	Meaning string `json:"meaning"`
}

// A Task is what a controller has to do while the program runs.
type Task struct {
	Name      string   `json:"name"`
	Every     string   `json:"every"`
	Reads     []string `json:"reads,omitempty"`
	Writes    []string `json:"writes,omitempty"`
	Meaning   string   `json:"meaning"`
	Parameter string   `json:"parameter,omitempty"`
}
