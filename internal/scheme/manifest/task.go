package manifest

import "github.com/p4lb/p4lb/internal/text/lists"

// A Task is periodic work of the controller. Its kind determines the required fields.
type Task struct {
	Kind TaskKind `json:"kind"`

	Header    string          `json:"header,omitempty"`    // header of its packets
	Registers map[Part]string `json:"registers,omitempty"` // registers by their role in the task
	Filters   []string        `json:"filters,omitempty"`   // low-pass filters of Tofino that it reads

	Period  Duration `json:"period,omitempty"`
	Theta   Duration `json:"theta,omitempty"`   // the period is theta divided by the load of the links ...
	Most    Duration `json:"most,omitempty"`    // ... but at most this ...
	Gap     Duration `json:"gap,omitempty"`     // ... and at least twice this
	Window  Duration `json:"window,omitempty"`  // decay time of rates
	Stale   Duration `json:"stale,omitempty"`   // older values are ignored
	Average bool     `json:"average,omitempty"` // a path is congested above twice the average, instead of twice the least
	Delay   Duration `json:"delay,omitempty"`   // delay of a link
	Rate    int64    `json:"rate,omitempty"`    // rate of a link in bit/s
	Pause   int64    `json:"pause,omitempty"`   // threshold in bytes at which PFC pauses a port
	Incast  int64    `json:"incast,omitempty"`  // number of simultaneous senders
	Limit   int64    `json:"limit,omitempty"`   // largest value to write

	Repeat              // repetition of the frames to send
	Frame  []FrameField `json:"frame,omitempty"`
	In     Expr         `json:"in,omitzero"` // port at which the frame arrives; default: the CPU port
	// Returns is the register of the switch that changes when a frame comes back.
	Returns string `json:"returns,omitempty"`

	Meaning string `json:"meaning,omitempty"` // explanation for readers
}

// TaskKind is the kind of a task.
type TaskKind string

// The kinds of task.
const (
	ProbeFlood   TaskKind = "probe"
	PathProbe    TaskKind = "path-probe"
	Granular     TaskKind = "granularity"
	QueueLimit   TaskKind = "threshold"
	Rezero       TaskKind = "rezero"
	RecircLimit  TaskKind = "recirculation-limit"
	FailureWatch TaskKind = "failure-detection"
	Expire       TaskKind = "expire"
	Ageing       TaskKind = "ageing"
	RateFilter   TaskKind = "filter"
	SampleFilter TaskKind = "marks-filter"
	SendFrame    TaskKind = "send"
)

// Words lists the kinds.
func (TaskKind) Words() []Word {
	return []Word{
		{string(ProbeFlood), "periodically send a probe about this switch into the network"},
		{string(PathProbe), "periodically send a probe along each path"},
		{string(Granular), "write the granularity that follows from the delays of the paths (PDLB's Eq. 10)"},
		{string(QueueLimit), "write the queue length above which a flow changes its path (QDAPS's Eq. 14)"},
		{string(Rezero), "set counts of ingress queues to 0 while the switch holds no packet"},
		{string(RecircLimit), "write the limit of recirculations of a packet (RLB's Eq. 5)"},
		{string(FailureWatch), "close ports because of which packets recirculate too often (RLB's Algorithm 2)"},
		{string(Expire), "delete best paths without a probe for a period"},
		{string(Ageing), "count the flows that wait for their last packet to leave"},
		{string(RateFilter), "set low-pass filters that measure rates, so that a full link gives 256"},
		{string(SampleFilter), "set low-pass filters that average samples"},
		{string(SendFrame), "periodically make a frame arrive at a port of the switch, by default its CPU port"},
	}
}

// Part is the role of a register in a task.
type Part string

// The roles of registers in tasks.
const (
	PartDelay      Part = "delay"
	PartMoment     Part = "moment"
	PartSize       Part = "granularity"
	PartThreshold  Part = "threshold"
	PartQueue      Part = "queue"
	PartIn         Part = "in"
	PartOut        Part = "out"
	PartGone       Part = "gone"
	PartInterval   Part = "interval"
	PartRoundTime  Part = "recirculation-time"
	PartRoundQueue Part = "recirculation-queue"
	PartLimit      Part = "limit"
	PartRounds     Part = "recirculations"
	PartPackets    Part = "packets"
	PartPortRounds Part = "port-recirculations"
	PartFaulty     Part = "faulty"
	PartBest       Part = "best"
	PartDeadline   Part = "deadline"
	PartSlot       Part = "slot"
	PartLoad       Part = "load"
)

// Words lists the parts.
func (Part) Words() []Word {
	return []Word{
		{string(PartDelay), "the delays of paths"},
		{string(PartMoment), "the times at which the values were received"},
		{string(PartSize), "the granularity of each group"},
		{string(PartThreshold), "the threshold"},
		{string(PartQueue), "packets from a port that are still in the switch"},
		{string(PartIn), "packets received from a port"},
		{string(PartOut), "of these, departed packets known to ingress"},
		{string(PartGone), "of these, departed packets known to egress"},
		{string(PartInterval), "the start of the interval of each port"},
		{string(PartRoundTime), "the duration of a recirculation"},
		{string(PartRoundQueue), "bytes that wait for recirculation"},
		{string(PartLimit), "the limit of recirculations of a packet"},
		{string(PartRounds), "recirculations"},
		{string(PartPackets), "packets that recirculated"},
		{string(PartPortRounds), "recirculations because of each port"},
		{string(PartFaulty), "whether a port is closed"},
		{string(PartBest), "the best path to each destination"},
		{string(PartDeadline), "the time at which the last packet of a flow leaves"},
		{string(PartSlot), "the path of a flow"},
		{string(PartLoad), "recent bytes of each port, or the share of the link's rate"},
	}
}

// taskNeeds lists the required fields of a kind of task.
type taskNeeds struct {
	Header    []FieldRole // required fields of the header; none: the task sends nothing
	Registers []Part
	Either    []Part // at least one of these, in addition to Registers
	Fields    []string
	Filters   bool
}

// needs returns the required fields of a kind.
func (k TaskKind) needs() taskNeeds {
	switch k {
	case ProbeFlood:
		return taskNeeds{Header: []FieldRole{Origin}}
	case PathProbe:
		return taskNeeds{Header: []FieldRole{FromLeaf, ToLeaf, AlongPath}, Fields: []string{"period"}}
	case Granular:
		return taskNeeds{Registers: []Part{PartDelay, PartMoment, PartSize}, Fields: []string{"period"}}
	case QueueLimit:
		return taskNeeds{Registers: []Part{PartThreshold}}
	case Rezero:
		return taskNeeds{Either: []Part{PartQueue, PartIn}, Fields: []string{"period"}}
	case RecircLimit:
		return taskNeeds{Registers: []Part{PartRoundTime, PartLimit}, Either: []Part{PartQueue, PartIn}, Fields: []string{"period", "limit"}}
	case FailureWatch:
		return taskNeeds{Registers: []Part{PartRounds, PartPackets, PartPortRounds, PartLimit, PartFaulty}, Fields: []string{"period"}}
	case Expire:
		return taskNeeds{Registers: []Part{PartMoment, PartBest}, Fields: []string{"period"}}
	case Ageing:
		return taskNeeds{Registers: []Part{PartDeadline, PartSlot}}
	case RateFilter:
		return taskNeeds{Filters: true, Fields: []string{"rate", "window"}}
	case SampleFilter:
		return taskNeeds{Filters: true, Fields: []string{"window"}}
	case SendFrame:
		return taskNeeds{Fields: []string{"period", "frame"}}
	}
	return taskNeeds{}
}

// A Session is a clone session to configure. With PerPort, there is one for
// each port that leads to another switch: Session+port leads to that port.
//
// For other cases, At and To are expressions for the number and the port of each repetition.
type Session struct {
	Session int         `json:"session,omitempty"`
	Kind    SessionKind `json:"kind,omitempty"`
	Port    int         `json:"port,omitempty"`
	PerPort bool        `json:"per_port,omitempty"`
	Bytes   int         `json:"bytes,omitempty"` // length to which copies are truncated
	Repeat
	At      Expr   `json:"at,omitzero"`
	To      Expr   `json:"to,omitzero"`
	Meaning string `json:"meaning,omitempty"` // explanation for readers
}

// SessionKind is the purpose of copies.
type SessionKind string

// The purposes of clone sessions.
const (
	reportCopies  SessionKind = "report"
	WarningCopies SessionKind = "warning"
	otherCopies   SessionKind = "other"
)

// Words lists the purposes of clone sessions.
func (SessionKind) Words() []Word {
	return []Word{
		{string(reportCopies), "they report measurements of egress to ingress"},
		{string(WarningCopies), "they warn a neighbour"},
		{string(otherCopies), "something else"},
	}
}

// A Multicast is a multicast group to configure. At gives the group number of each repetition. To
// is an expression that is 1 for the group's ports. Its facts include $to-port and $to-host.
type Multicast struct {
	Group   int     `json:"group,omitempty"`
	PerPort bool    `json:"per_port,omitempty"` // packets from a port use the group Group+port
	Members Members `json:"members,omitempty"`
	Ports   []int   `json:"ports,omitempty"` // for members: ports
	Repeat
	At      Expr   `json:"at,omitzero"`
	To      Expr   `json:"to,omitzero"`
	Meaning string `json:"meaning,omitempty"` // explanation for readers
}

// Members describes the ports of a multicast group.
type Members string

// The kinds of members.
const (
	MembersUp       Members = "up"
	MembersOnward   Members = "onward"
	MembersSwitches Members = "neighbours"
	MembersHosts    Members = "hosts"
	MembersAll      Members = "all"
	MembersPorts    Members = "ports"
)

// Words lists the kinds of members.
func (Members) Words() []Word {
	return []Word{
		{string(MembersUp), "ports to higher switches"},
		{string(MembersOnward), "for packets from below, all other ports to switches; for packets from above, ports to lower switches"},
		{string(MembersSwitches), "all ports to switches except the ingress port"},
		{string(MembersHosts), "all ports to hosts except the ingress port"},
		{string(MembersAll), "all ports with a link except the ingress port"},
		{string(MembersPorts), "the ports that are listed"},
	}
}

// A VirtualPort is a port to which no interface may be attached.
type VirtualPort struct {
	Port    int         `json:"port"`
	Kind    VirtualKind `json:"kind,omitempty"`
	Meaning string      `json:"meaning,omitempty"` // explanation for readers
}

// VirtualNumbers returns the numbers of the virtual ports.
func (m *Manifest) VirtualNumbers() []int {
	return lists.Map(m.VirtualPorts, func(v VirtualPort) int { return v.Port })
}

// A VirtualAddress is an address that belongs to the program, such as a service with several
// servers. Hosts of its subnet resolve it without ARP or neighbour discovery.
type VirtualAddress struct {
	Address string `json:"address"`       // IPv4 or IPv6
	MAC     string `json:"mac,omitempty"` // "": the MAC address of the host's switch
}

// VirtualKind is the purpose of a virtual port.
type VirtualKind string

// The purposes of virtual ports.
const (
	ReportPort        VirtualKind = "report"
	RecirculationPort VirtualKind = "recirculation"
)

// Words lists the kinds.
func (VirtualKind) Words() []Word {
	return []Word{
		{string(ReportPort), "copies become reports to ingress there"},
		{string(RecirculationPort), "packets recirculate there"},
	}
}

// A Generator is an application of Tofino's packet generator. It can replace a periodic task of
// the controller.
type Generator struct {
	App     int      `json:"app"`
	Task    TaskKind `json:"task"`
	Packet  string   `json:"packet,omitempty"`  // description of the packet, for readers
	Meaning string   `json:"meaning,omitempty"` // explanation for readers
}

// A Header is a header that the program itself sends, or recirculates within the switch.
type Header struct {
	Name      string        `json:"name"`
	Kind      HeaderKind    `json:"kind,omitempty"`
	EtherType int           `json:"ether_type,omitempty"` // 0: the header is recognised otherwise
	Fields    []HeaderField `json:"fields,omitempty"`
	Meaning   string        `json:"meaning,omitempty"` // explanation for readers
}

// Bytes returns the length of the header.
func (h *Header) Bytes() int {
	bits := 0
	for _, f := range h.Fields {
		bits += f.Width
	}
	return bits / 8
}

// A HeaderField is a field of a Header.
type HeaderField struct {
	Name    string    `json:"name"`
	Width   int       `json:"width"`
	Carries FieldRole `json:"carries,omitempty"`
	Value   uint64    `json:"value,omitempty"`   // value in packets of a task
	Meaning string    `json:"meaning,omitempty"` // explanation for readers
}

// HeaderKind is the purpose of a header.
type HeaderKind string

// The purposes of headers.
const (
	ProbeHeader     HeaderKind = "probe"
	pathProbeHeader HeaderKind = "path-probe"
	ReportHeader    HeaderKind = "report"
	OverlayHeader   HeaderKind = "overlay"
	WarningHeader   HeaderKind = "warning"
	PauseHeader     HeaderKind = "pause"
	RoundHeader     HeaderKind = "recirculation"
	BridgeHeader    HeaderKind = "bridge"
	otherHeader     HeaderKind = "other"
)

// Words lists the kinds.
func (HeaderKind) Words() []Word {
	return []Word{
		{string(ProbeHeader), "a probe that floods the network"},
		{string(pathProbeHeader), "a probe along one path and back"},
		{string(ReportHeader), "the report of egress to ingress"},
		{string(OverlayHeader), "information between leaves in each packet"},
		{string(WarningHeader), "a warning to a neighbour"},
		{string(PauseHeader), "a PFC frame of a neighbour; switches pass such frames to the program"},
		{string(RoundHeader), "state of a recirculated packet"},
		{string(BridgeHeader), "metadata of a packet from ingress to egress"},
		{string(otherHeader), "something else"},
	}
}

// FieldRole is the role of a header field in packets of tasks.
type FieldRole string

// The roles of header fields.
const (
	Origin    FieldRole = "origin"
	Sequence  FieldRole = "sequence"
	FromLeaf  FieldRole = "from-leaf"
	ToLeaf    FieldRole = "to-leaf"
	AlongPath FieldRole = "path"
)

// Words lists the roles.
func (FieldRole) Words() []Word {
	return []Word{
		{string(Origin), "the number of the switch that the probe is about"},
		{string(Sequence), "counts the probes"},
		{string(FromLeaf), "the number of the leaf that sends the probe"},
		{string(ToLeaf), "the number of the leaf that it is for"},
		{string(AlongPath), "the slot of the path that it takes"},
	}
}
