package manifest

import "slices"

// A Table is a table that the controller fills or ignores.
type Table struct {
	Name    string   `json:"name"`
	Purpose Purpose  `json:"purpose,omitempty"`
	Keys    []Key    `json:"keys,omitempty"` // in the program's order
	Actions []Action `json:"actions,omitempty"`
	Entries []Entry  `json:"entries,omitempty"` // in addition to the entries of the purpose
	Baked   *Baked   `json:"baked,omitempty"`   // for tables with the purpose baked
	BfRt    string   `json:"bfrt,omitempty"`
	Meaning string   `json:"meaning,omitempty"` // explanation for readers
}

// A Key is a field of a table's key.
type Key struct {
	Name    string `json:"name"`
	Match   string `json:"match,omitempty"` // exact, lpm, ternary, range or optional
	Carries Fact   `json:"carries,omitempty"`
	// Value is the constant value of a key field without a fact: a number, an address, or * for
	// any value.
	Value string `json:"value,omitempty"`
}

// An Action is an action of a table.
type Action struct {
	Name   string  `json:"name"` // name without its control
	Params []Param `json:"params,omitempty"`
}

// A Param is a parameter of an action.
type Param struct {
	Name    string `json:"name"`
	Carries Fact   `json:"carries,omitempty"`
	Slot    int    `json:"slot,omitempty"`  // slot of the path that it describes, in tables of groups
	Value   string `json:"value,omitempty"` // constant value of a parameter without a fact
}

// Key finds the key field with a fact, or nil.
func (t *Table) Key(f Fact) *Key {
	return find(t.Keys, func(k *Key) bool { return k.Carries == f })
}

// Action finds the first action that has a parameter with one of the facts, or nil.
func (t *Table) Action(facts ...Fact) *Action {
	return find(t.Actions, func(a *Action) bool {
		return slices.ContainsFunc(a.Params, func(p Param) bool { return slices.Contains(facts, p.Carries) })
	})
}

// find returns the first element for which is returns true, or nil.
func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// Purpose is the purpose of a table, which determines its entries.
type Purpose string

// The purposes of tables.
const (
	None       Purpose = "none"
	Program    Purpose = "program"
	Route      Purpose = "route"
	Member     Purpose = "member"
	Group      Purpose = "group"
	PortConfig Purpose = "port"
	Neighbour  Purpose = "neighbour"
	Leaf       Purpose = "leaf"
	LeafOf     Purpose = "leaf-of"
	Arrival    Purpose = "arrival"
	Identity   Purpose = "identity"
	Upstream   Purpose = "upstream"
	Polynomial Purpose = "polynomial"
	BakedTable Purpose = "baked"
)

// Words lists the purposes.
func (Purpose) Words() []Word {
	return []Word{
		{string(None), "only explicit entries"},
		{string(Program), "the program's own entries"},
		{string(Route), "each destination: its next hop, or the group of its next hops"},
		{string(Member), "each path of each group: its port and next hop"},
		{string(Group), "each group: facts about each of its paths"},
		{string(PortConfig), "each port that has a link"},
		{string(Neighbour), "each port that leads to another switch"},
		{string(Leaf), "each leaf: a port towards it, or an entry that marks it as this switch"},
		{string(LeafOf), "each destination that is not below this switch: its leaf"},
		{string(Arrival), "each leaf and each port that leads to it: the slot of that path"},
		{string(Identity), "the number of this switch, in the default action"},
		{string(Upstream), "each port that leads to another switch: the clone session back to it"},
		{string(Polynomial), "a fitted polynomial, in the default action"},
		{string(BakedTable), "each key: a precomputed value"},
	}
}

// Fact is the value that a key field or an action parameter carries.
type Fact string

// The facts about a network.
const (
	Destination Fact = "destination"
	EgressPort  Fact = "port"
	IngressPort Fact = "ingress-port"
	NextMAC     Fact = "next-mac"
	OwnMAC      Fact = "own-mac"
	HostAddress Fact = "host-address"
	HostMAC     Fact = "host-mac"
	GroupID     Fact = "group"
	PathCount   Fact = "paths"
	SlotNumber  Fact = "slot"
	FirstMember Fact = "first-member"
	MemberIndex Fact = "member"
	PathWeight  Fact = "weight"
	WeightEnd   Fact = "weight-end"
	QueueNumber Fact = "queue"
	ServiceTime Fact = "service-time"
	Capacity    Fact = "capacity"
	Reciprocal  Fact = "capacity-reciprocal"
	LinkRate    Fact = "rate"
	LeafNumber  Fact = "leaf"
	NodeNumber  Fact = "switch"
	CloneTo     Fact = "session"
	FloodTo     Fact = "multicast-group"
	Coefficient Fact = "coefficient"
	bakedValue  Fact = "baked"

	// These facts are only for expressions.
	PrefixLength   Fact = "prefix-length"
	IPv6           Fact = "ipv6"
	HostNumber     Fact = "host"
	HostPlace      Fact = "host-place"
	Here           Fact = "here"
	Neighbouring   Fact = "neighbour"
	FarPort        Fact = "far-port"
	LinkSpeed      Fact = "mbps"
	LinkDelay      Fact = "delay"
	LinkUp         Fact = "up"
	LeadsAbove     Fact = "above"
	LeadsBelow     Fact = "below"
	Tier           Fact = "tier"
	Home           Fact = "home"
	PortTotal      Fact = "ports"
	HostTotal      Fact = "hosts"
	CPU            Fact = "cpu"
	NextPort       Fact = "next-port"
	FirstPath      Fact = "first-path"
	PathNumber     Fact = "path"
	RangeNumber    Fact = "i"
	ToPort         Fact = "to-port"
	ToHost         Fact = "to-host"
	ToNeighbour    Fact = "to-neighbour"
	ToAbove        Fact = "to-above"
	ToBelow        Fact = "to-below"
	SourceLeaf     Fact = "source"
	SenderNumber   Fact = "sender"
	SenderAddress  Fact = "sender-address"
	SenderLeaf     Fact = "sender-leaf"
	ServiceNumber  Fact = "service"
	ServiceAddress Fact = "service-address"
	ServicePort    Fact = "service-port"
	ServerTotal    Fact = "servers"
	ServerIndex    Fact = "server"
	Serving        Fact = "serves"
	SendTime       Fact = "time"
	SendCount      Fact = "sequence"
)

// Words lists the facts.
func (Fact) Words() []Word {
	return []Word{
		{string(Destination), "a prefix of addresses: of IPv4 in fields of 32 bits, of IPv6 in fields of 128 bits"},
		{string(EgressPort), "the port that leads there"},
		{string(IngressPort), "the port at which a packet arrived"},
		{string(NextMAC), "the MAC of the next hop"},
		{string(OwnMAC), "the MAC of the switch at the port"},
		{string(HostAddress), "the address of a host; an IPv6 address must be the whole expression, a value of 128 bits"},
		{string(HostMAC), "the MAC of a host"},
		{string(GroupID), "the id of a group of paths"},
		{string(PathCount), "the number of paths in the group"},
		{string(SlotNumber), "a path, by its slot in the group, from 0"},
		{string(FirstMember), "the number of the group's first path, counted over all groups"},
		{string(MemberIndex), "the number of a path, counted over all groups"},
		{string(PathWeight), "the capacity of the path relative to the group"},
		{string(WeightEnd), "the last of 256 shares that the path gets by its weight"},
		{string(QueueNumber), "the number of the port's first queue in its pipe"},
		{string(ServiceTime), "the time to send a full packet, in us/65536"},
		{string(Capacity), "of the port's queue, in packets"},
		{string(Reciprocal), "floor(255*65536/(capacity-1))"},
		{string(LinkRate), "of the port's link, in full packets per second"},
		{string(LeafNumber), "the number of a leaf, from 1"},
		{string(NodeNumber), "the number of this switch, from 1"},
		{string(CloneTo), "the clone session to the port"},
		{string(FloodTo), "the multicast group for packets from the port; 0: none"},
		{string(Coefficient), "the coefficient that has the parameter's name"},
		{string(bakedValue), "a precomputed value"},
		{string(PrefixLength), "the length of the destination's prefix"},
		{string(IPv6), "1 if the address of the host, or the destination, is an IPv6 address"},
		{string(HostNumber), "the number of a host, from 1; for a port, of the host at the other end, 0 for a switch"},
		{string(HostPlace), "a host, by its position at its leaf, from 0"},
		{string(Here), "1 if the host is at this switch"},
		{string(Neighbouring), "the number of the switch at the other end of the link, 0 for a host"},
		{string(FarPort), "the port at the other end of the link"},
		{string(LinkSpeed), "the rate of the port's link, in Mbit/s"},
		{string(LinkDelay), "the delay of the port's link, in us"},
		{string(LinkUp), "1 if the port's link is not down"},
		{string(LeadsAbove), "1 if the port leads to a higher switch"},
		{string(LeadsBelow), "1 if the port leads to a host or a lower switch"},
		{string(Tier), "the tier of this switch: 1 for leaves, larger for higher switches"},
		{string(Home), "the number of this switch as a leaf, 0 if it has no hosts"},
		{string(PortTotal), "the number of ports of this switch that have a link"},
		{string(HostTotal), "the number of hosts at this switch"},
		{string(CPU), "the port of the controller"},
		{string(NextPort), "the port through which the next switch forwards to it (the first of several); 0 if no switch leads to it"},
		{string(FirstPath), "the number of the first path to it, counted over all repetitions"},
		{string(PathNumber), "the number of a path, counted over all groups"},
		{string(RangeNumber), "the number of a range such as 0..7"},
		{string(ToPort), "of a multicast group: a port that it may lead to"},
		{string(ToHost), "the number of the host at that port, or 0"},
		{string(ToNeighbour), "the number of the switch at that port, or 0"},
		{string(ToAbove), "1 if that port leads to a higher switch"},
		{string(ToBelow), "1 if that port leads to a host or a lower switch"},
		{string(SourceLeaf), "the number of a leaf that sends to the leaf"},
		{string(SenderNumber), "the number of a host that sends to the host"},
		{string(SenderAddress), "its address; an IPv6 address must be the whole expression, a value of 128 bits"},
		{string(SenderLeaf), "the number of its leaf"},
		{string(ServiceNumber), "the number of a service of the topology, from 1"},
		{string(ServiceAddress), "its address; an IPv6 address must be the whole expression, a value of 128 bits"},
		{string(ServicePort), "its port; 0: all"},
		{string(ServerTotal), "the number of servers in its pool: reachable ones that are not drained"},
		{string(ServerIndex), "a server, by its position among the servers in the pool, from 0"},
		{string(Serving), "of a host after a service: 1 if it is a server of the service, in the pool or not"},
		{string(SendTime), "in a frame that a task sends: the lowest bits of the switch's clock in us"},
		{string(SendCount), "in a frame that a task sends: the lowest bits of the number of earlier frames"},
	}
}

// Baked contains precomputed entries of a table, one for each key. In the order of
// entries, the first key field changes fastest.
type Baked struct {
	Action string     `json:"action"`
	Keys   []BakedKey `json:"keys"`

	// Values are the action's arguments for each key.
	//
	// If there are too many keys, Weights replaces Values. It contains the weight
	// of each level of a path. The arguments are then the cumulative shares of all
	// paths but the last, in parts of Total. If all weights are 0, the paths with
	// level Zero share equally; without such a path, all paths do.
	//
	// Without Values and Weights, the controller computes the values from its
	// fitted polynomial.
	Values  []int `json:"values,omitempty"`
	Weights []int `json:"weights,omitempty"`
	Total   int   `json:"total,omitempty"`
	Zero    []int `json:"zero,omitempty"`
}

// A BakedKey is a field of the key.
type BakedKey struct {
	Name   string `json:"name"`
	Values int    `json:"values"` // the field takes the values 0 to Values-1
}

// Ends returns the arguments of an entry for the levels of all paths.
func (b *Baked) Ends(levels []int) []int {
	weights, sum := b.weigh(levels, func(level int) int { return b.Weights[level] })
	if sum == 0 {
		weights, sum = b.weigh(levels, func(level int) int {
			if slices.Contains(b.Zero, level) {
				return 1
			}
			return 0
		})
	}
	if sum == 0 {
		weights, sum = b.weigh(levels, func(int) int { return 1 })
	}
	ends := make([]int, len(levels)-1)
	so := 0
	for i := range ends {
		so += weights[i]
		ends[i] = max(so*b.Total/sum, 1) - 1
	}
	return ends
}

func (b *Baked) weigh(levels []int, weight func(level int) int) (weights []int, sum int) {
	for _, level := range levels {
		weights = append(weights, weight(level))
		sum += weight(level)
	}
	return weights, sum
}
