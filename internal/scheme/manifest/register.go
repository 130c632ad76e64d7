package manifest

// A Register is an array in which the program stores state.
type Register struct {
	Name string `json:"name"` // name in P4Info
	// Label is the name for readers; "": the name without its control. The copies of a register
	// have the same label.
	Label string `json:"label,omitempty"`

	Index Index `json:"index,omitempty"`
	Size  int   `json:"size,omitempty"`  // number of cells; 0: as in the program
	Width int   `json:"width,omitempty"` // bits of a cell; 0: as in the program
	// Each is the number of cells per group. It is set in registers that remember
	// earlier choices of the group.
	Each int `json:"each,omitempty"`

	Content
	// Fields are the parts of a cell with several values. If there are fields, the register's own
	// Content has only a Meaning.
	Fields []Field `json:"fields,omitempty"`
	// Copy marks a register as one of several with the same meaning. Programs copy registers
	// because a packet can access each register only once.
	Copy *Copy `json:"copy,omitempty"`

	Writer  Writer `json:"writer,omitempty"`
	Initial []Cell `json:"initial,omitempty"` // cells that do not start with 0
	Cells   []Fill `json:"cells,omitempty"`   // initial values that depend on the network
	BfRt    string `json:"bfrt,omitempty"`    // name of its table in BfRt
}

// A Field is a part of the cells of a register.
type Field struct {
	Label string `json:"label"` // name for readers
	Shift int    `json:"shift"` // number of its lowest bit
	Width int    `json:"width"`
	Content
}

// Content describes the values in cells.
type Content struct {
	Kind Kind `json:"kind,omitempty"`
	Unit Unit `json:"unit,omitempty"`
	// The value is (cell + Offset) / Scale; Scale 0 means 1.
	Scale  int64 `json:"scale,omitempty"`
	Offset int64 `json:"offset,omitempty"`
	// Valid is the number of a bit that marks the value in the lower bits as valid; 0: the value
	// is always valid.
	Valid int `json:"valid,omitempty"`

	// Quantity is the name of the measured quantity, such as occupancy, which is the same in all
	// programs; "": the label.
	Quantity string `json:"quantity,omitempty"`
	// Internal marks values for the program's own use, which inspection hides.
	Internal bool   `json:"internal,omitempty"`
	Symbol   string `json:"symbol,omitempty"` // symbol in the paper

	// Event and Of describe a moment or a deadline. Event is the event at that time, and Of is
	// the label of the register concerned. For example, {kind: moment, event:
	// heard, of: q_C} is the last time at which the switch received q_C.
	Event Event  `json:"event,omitempty"`
	Of    string `json:"of,omitempty"`
	// Reports is the egress register with the reported value that this register stores.
	Reports string `json:"reports,omitempty"`
	// Per is the label of the register that counts the total. This register counts
	// a share of it.
	Per string `json:"per,omitempty"`
	// Window is the time constant of a decaying rate.
	Window Duration `json:"window,omitempty"`

	Meaning string `json:"meaning,omitempty"` // explanation for readers
}

// Copy identifies one of several copies of a register.
type Copy struct {
	Slot int `json:"slot"` // slot of the path for which it is read
	Of   int `json:"of"`   // number of copies
}

// A Cell is a cell of a Register.
type Cell struct {
	Index int   `json:"index"` // -1: all cells
	Value int64 `json:"value"`
}

// Called returns the register's name for readers.
func (r *Register) Called() string {
	if r.Label != "" {
		return r.Label
	}
	return Short(r.Name)
}

// Kind is the kind of value in a register's cells.
type Kind string

// The kinds of value.
const (
	Opaque      Kind = "opaque"
	Occupancy   Kind = "occupancy"
	QueueLength Kind = "queue"
	Interval    Kind = "interval"
	Trend       Kind = "trend"
	Congestion  Kind = "congestion"
	Degree      Kind = "degree"
	Marks       Kind = "marks"
	pathState   Kind = "path-state"
	Utilisation Kind = "utilisation"
	Rate        Kind = "rate"
	Delay       Kind = "delay"
	Weight      Kind = "weight"
	Moment      Kind = "moment"
	Deadline    Kind = "deadline"
	Slot        Kind = "slot"
	Port        Kind = "port"
	Count       Kind = "count"
	Threshold   Kind = "threshold"
	Granularity Kind = "granularity"
	Flag        Kind = "flag"
)

// Words lists the kinds.
func (Kind) Words() []Word {
	return []Word{
		{string(Opaque), "a value without a described meaning"},
		{string(Occupancy), "share of a queue's capacity that is taken"},
		{string(QueueLength), "length of a queue"},
		{string(Interval), "time between two packets that leave a queue"},
		{string(Trend), "whether a queue grows: 2 rising, 1 falling"},
		{string(Congestion), "congestion index: the larger, the worse"},
		{string(Degree), "load degree: the larger, the better"},
		{string(Marks), "share of packets that met congestion"},
		{string(pathState), "class of a path: the larger, the worse"},
		{string(Utilisation), "share of a link's rate that is used"},
		{string(Rate), "recent traffic, as a count that decays within a window"},
		{string(Delay), "a duration"},
		{string(Weight), "share of the traffic that a path gets, relative to the other paths"},
		{string(Moment), "time of an event, by the switch's clock"},
		{string(Deadline), "time at which a state ends, by the switch's clock"},
		{string(Slot), "a path, by its slot in the group"},
		{string(Port), "a port of the switch"},
		{string(Count), "a total since the start"},
		{string(Threshold), "a limit with which a value is compared"},
		{string(Granularity), "number of packets or bytes that take the same path together"},
		{string(Flag), "1 or 0"},
	}
}

// Unit is the unit of a value. A kind without a unit is a plain number.
type Unit string

// The units.
const (
	Nanoseconds    Unit = "ns"
	Microseconds   Unit = "us"
	Milliseconds   Unit = "ms"
	Ticks          Unit = "1024ns"
	Bytes          Unit = "bytes"
	Packets        Unit = "packets"
	cells80        Unit = "cells of 80 bytes"
	cells176       Unit = "cells of 176 bytes"
	flowcells      Unit = "flowcells"
	Recirculations Unit = "recirculations"
	Level          Unit = "level"
	Class          Unit = "class"
	scoreUnit      Unit = "score"
)

// Words lists the units.
func (Unit) Words() []Word {
	return []Word{
		{string(Nanoseconds), "time"},
		{string(Microseconds), "time"},
		{string(Milliseconds), "time"},
		{string(Ticks), "time, as Tofino's programs count it: in 32 bits, which wrap"},
		{string(Bytes), "an amount of data"},
		{string(Packets), "an amount of data"},
		{string(cells80), "buffer cells of Tofino, 80 bytes each"},
		{string(cells176), "buffer cells of Tofino 2, 176 bytes each"},
		{string(flowcells), "pieces of a flow"},
		{string(Recirculations), "number of recirculations"},
		{string(Level), "a step of a coarse scale"},
		{string(Class), "one of a few classes"},
		{string(scoreUnit), "points"},
	}
}

// Nanoseconds returns the length of a unit of time, or 0 for other units.
func (u Unit) Nanoseconds() int64 {
	switch u {
	case Nanoseconds:
		return 1
	case Microseconds:
		return 1e3
	case Milliseconds:
		return 1e6
	case Ticks:
		return 1024
	}
	return 0
}

// Index is the object that a cell describes.
type Index string

// The objects that cells describe.
const (
	BySwitch      Index = "switch"
	ByPort        Index = "port"
	ByGroup       Index = "group"
	ByPath        Index = "path"
	ByFlow        Index = "flow"
	ByMemory      Index = "memory"
	ByQueue       Index = "queue"
	ByDestination Index = "destination"
	ByNode        Index = "node"
)

// Words lists the indices.
func (Index) Words() []Word {
	return []Word{
		{string(BySwitch), "one cell, of the switch"},
		{string(ByPort), "a cell for each port, by its number"},
		{string(ByGroup), "a cell for each group of paths, by its id"},
		{string(ByPath), "a cell for each path, at group*16 + slot"},
		{string(ByFlow), "a cell for each slot of flows, selected by a hash"},
		{string(ByMemory), "remembered paths of a group, at group*each + k"},
		{string(ByQueue), "a cell for each queue of a pipe"},
		{string(ByDestination), "a cell for each leaf, by its number"},
		{string(ByNode), "a cell for each switch of the network, by its number"},
	}
}

// Event is the event to which a moment refers.
type Event string

// The events.
const (
	Heard     Event = "heard"
	Reported  Event = "reported"
	Warned    Event = "warned"
	Updated   Event = "updated"
	Arrived   Event = "arrived"
	departed  Event = "departed"
	Began     Event = "began"
	Departure Event = "departure"
	Pause     Event = "pause"
)

// Words lists the events.
func (Event) Words() []Word {
	return []Word{
		{string(Heard), "the switch received it in a report or a probe"},
		{string(Reported), "egress reported it to ingress"},
		{string(Warned), "a neighbour was warned about it"},
		{string(Updated), "the value was last correct"},
		{string(Arrived), "the last packet arrived"},
		{string(departed), "the last packet left"},
		{string(Began), "the interval or epoch began"},
		{string(Departure), "the last packet will have left, or arrived (of a deadline)"},
		{string(Pause), "the port is expected to be paused (of a deadline)"},
	}
}

// Writer is the writer of a register.
type Writer string

// The writers of registers.
const (
	dataPlane  Writer = "data plane"
	Controller Writer = "controller"
	Both       Writer = "both"
)

// Words lists the writers.
func (Writer) Words() []Word {
	return []Word{
		{string(dataPlane), "only packets"},
		{string(Controller), "only the controller"},
		{string(Both), "packets, and the controller to reset it"},
	}
}

// A Counter is an array of counters.
type Counter struct {
	Name    string `json:"name"`
	Index   Index  `json:"index,omitempty"`
	Size    int    `json:"size,omitempty"`
	Unit    Unit   `json:"unit,omitempty"`
	Meaning string `json:"meaning,omitempty"`
}

// Weights describes the weights by which paths of a group are chosen at random. Inspection shows
// the resulting shares.
type Weights struct {
	From WeightSource `json:"from"`
	// Register is the label of the register with the values that determine the weights.
	Register string `json:"register,omitempty"`
	// A value v gives the weight Most - v, but at least Least. With Most 0 the weight is v.
	Most  int64 `json:"most,omitempty"`
	Least int64 `json:"least,omitempty"`
	// Stale is the age from which a value counts as 0.
	Stale Duration `json:"stale,omitempty"`
}

// WeightSource is the origin of weights.
type WeightSource string

// The origins of weights.
const (
	FromController WeightSource = "controller"
	FromRegister   WeightSource = "register"
	FromTable      WeightSource = "table"
)

// Words lists the origins of weights.
func (WeightSource) Words() []Word {
	return []Word{
		{string(FromController), "in proportion to the capacity of each path, from a table of the controller"},
		{string(FromRegister), "computed by the program, from the cells of the register about each path"},
		{string(FromTable), "from a precomputed table, by the levels in the register"},
	}
}
