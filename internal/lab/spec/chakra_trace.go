package spec

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// This file decodes the Chakra trace of one rank into nodes.

// The kinds of nodes (NodeType).
const (
	etInvalid = iota // takes no time, as in ASTRA-sim
	etMetadata
	etMemLoad
	etMemStore
	etComp
	etSend
	etRecv
	etColl
)

// etFields are the numbers of the fields of a Node.
const (
	etID       protowire.Number = 1
	etKind     protowire.Number = 3
	etCtrlDeps protowire.Number = 4
	etDataDeps protowire.Number = 5
	etDuration protowire.Number = 7
	etInputs   protowire.Number = 8
	etAttr     protowire.Number = 10
)

// longestNode bounds the duration of a node in µs.
const longestNode = uint64(longestPhase / 1000)

// An etNode is a node of a trace.
type etNode struct {
	id     uint64
	deps   []uint64
	micros uint64
	bytes  int64 // -1: not stated
	tag    int64
	group  string // process group; "": all ranks
	values []byte // inputs of a metadata node
	src    int32  // -1: not stated
	dst    int32  // -1: not stated
	comm   int16  // CollectiveCommType; -1: not stated
	kind   uint8

	begins int32 // first flow, which waits for the dependencies; -1: none
	ends   int32 // last flow, which completes the node; -1: none
}

// A trace is the trace of one rank.
type trace struct {
	file   string
	rank   int
	nodes  []etNode
	groups map[string][]int // ranks of process groups, by name
	known  map[string]place // position in each group with collectives, by name
}

// A place is the position of a rank in a group.
type place struct {
	group *etGroup
	at    int
}

// An etGroup is a process group with its collectives.
type etGroup struct {
	name  string
	ranks []int
	nodes [][]*etNode // by position in ranks
}

func (g *etGroup) String() string {
	if g.name == "" {
		return fmt.Sprintf("%d ranks", len(g.ranks))
	}
	return fmt.Sprintf("%d ranks of group %q", len(g.ranks), g.name)
}

// wrong returns an error at a node.
func (tr *trace) wrong(n *etNode, format string, args ...any) error {
	message := 1 + slices.IndexFunc(tr.nodes, func(o etNode) bool { return o.id == n.id })
	return fmt.Errorf("%s: message %d, node %d: %w", tr.file, message, n.id, fmt.Errorf(format, args...))
}

// parse reads the messages of a file, which may be gzipped. room limits the number of nodes.
func (tr *trace) parse(text []byte, room int) error {
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err == nil {
			text, err = plain.ReadAll(z)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", tr.file, err)
		}
	}
	if len(text) == 0 {
		return fmt.Errorf("%s: the file is empty: want a Chakra trace", tr.file)
	}
	count, err := tr.count(text)
	if err != nil {
		return err
	}
	if count-1 > room {
		return fmt.Errorf("%s: the traces have more than %d nodes", tr.file, maxMessages)
	}
	tr.nodes = make([]etNode, 0, count-1)
	size := len(text)
	for n := range count {
		at := size - len(text)
		message, used := protowire.ConsumeBytes(text)
		text = text[used:]
		if n == 0 {
			if err := checkMetadata(message); err != nil {
				return fmt.Errorf("%s: message 0 at byte 0: %w: want the metadata of a Chakra trace", tr.file, err)
			}
			continue
		}
		node, err := parseNode(message)
		if err != nil {
			return fmt.Errorf("%s: message %d at byte %d: %w", tr.file, n, at, err)
		}
		tr.nodes = append(tr.nodes, node)
	}
	return tr.resolve()
}

// count returns the number of messages of a trace.
func (tr *trace) count(text []byte) (n int, err error) {
	size := len(text)
	for ; len(text) > 0; n++ {
		at := size - len(text)
		length, used := protowire.ConsumeVarint(text)
		switch {
		case used < 0:
			return n, fmt.Errorf("%s: message %d at byte %d: its length is cut off or invalid", tr.file, n, at)
		case length > uint64(len(text)-used):
			return n, fmt.Errorf("%s: message %d at byte %d: %d bytes long, but the file ends after %d", tr.file, n, at, length, len(text)-used)
		}
		text = text[used+int(length):]
	}
	return n, nil
}

// fields calls do for each field of a message, with its number or bytes.
func fields(text []byte, do func(f protowire.Number, kind protowire.Type, v uint64, b []byte) error) error {
	for len(text) > 0 {
		f, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return errors.New("not a protobuf message")
		}
		text = text[n:]
		var v uint64
		var b []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(text)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(text)
		case protowire.Fixed32Type:
			var w uint32
			w, n = protowire.ConsumeFixed32(text)
			v = uint64(w)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(text)
		default:
			n = protowire.ConsumeFieldValue(f, kind, text)
		}
		if n < 0 {
			return fmt.Errorf("field %d is cut off or invalid", f)
		}
		text = text[n:]
		if err := do(f, kind, v, b); err != nil {
			return err
		}
	}
	return nil
}

// checkMetadata returns an error if a message is not a GlobalMetadata.
func checkMetadata(text []byte) error {
	return fields(text, func(f protowire.Number, kind protowire.Type, _ uint64, _ []byte) error {
		if f > 2 || kind != protowire.BytesType {
			return fmt.Errorf("field %d of wire type %d", f, kind)
		}
		return nil
	})
}

// parseNode reads a node.
func parseNode(text []byte) (etNode, error) {
	n := etNode{comm: -1, bytes: -1, src: -1, dst: -1, begins: -1, ends: -1}
	err := fields(text, func(f protowire.Number, kind protowire.Type, v uint64, b []byte) error {
		want := protowire.VarintType
		switch f {
		case etAttr, etInputs:
			want = protowire.BytesType
		case etCtrlDeps, etDataDeps:
			if kind == protowire.BytesType { // packed list
				for len(b) > 0 {
					v, used := protowire.ConsumeVarint(b)
					if used < 0 {
						return fmt.Errorf("field %d is cut off or invalid", f)
					}
					n.deps, b = append(n.deps, v), b[used:]
				}
				return nil
			}
			if kind == want {
				n.deps = append(n.deps, v)
			}
		case etID:
			n.id = v
		case etKind:
			if v > etColl {
				return fmt.Errorf("type %d of a node: want 0 to %d, as in NodeType", v, etColl)
			}
			n.kind = uint8(v)
		case etDuration:
			n.micros = v
		default:
			return nil
		}
		switch {
		case kind != want:
			return fmt.Errorf("field %d has wire type %d: want %d, as a node of a Chakra trace", f, kind, want)
		case f == etAttr:
			return n.attribute(b)
		case f == etInputs:
			return fields(b, func(f protowire.Number, _ protowire.Type, _ uint64, b []byte) error {
				if f == 1 {
					n.values = b
				}
				return nil
			})
		}
		return nil
	})
	switch {
	case err != nil:
		return n, err
	case n.micros > longestNode:
		return n, fmt.Errorf("node %d: duration_micros %d: want at most %d", n.id, n.micros, longestNode)
	}
	if n.kind != etMetadata {
		n.values = nil
	}
	return n, nil
}

// attribute reads an attribute. Numbers may have any integer type.
func (n *etNode) attribute(text []byte) error {
	var name, words string
	var number int64
	var dims []byte
	integer := false
	err := fields(text, func(f protowire.Number, _ protowire.Type, v uint64, b []byte) error {
		switch f {
		case 1:
			name = string(b)
		case 7, 9, 11, 13, 27: // int32, int64, uint32, uint64, bool
			number, integer = int64(v), true
		case 15, 17: // sint32, sint64
			number, integer = protowire.DecodeZigZag(v), true
		case 19, 23: // fixed32, sfixed32
			number, integer = int64(int32(v)), true
		case 21, 25: // fixed64, sfixed64
			number, integer = int64(v), true
		case 28: // packed bools
			dims = b
		case 29:
			words = string(b)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("an attribute: %w", err)
	}
	most := int64(math.MaxInt64)
	switch name {
	case "comm_type":
		most = math.MaxInt16
	case "comm_src", "comm_dst":
		most = math.MaxInt32
	case "comm_size", "comm_tag":
	case "pg_name":
		n.group = words
		if integer {
			n.group = strconv.FormatInt(number, 10)
		}
		return nil
	case "involved_dim":
		return fields(dims, func(_ protowire.Number, kind protowire.Type, v uint64, b []byte) error {
			if kind == protowire.VarintType && v == 0 || bytes.Contains(b, []byte{0}) {
				return errors.New("involved_dim selects dimensions of ASTRA-sim's network: want pg_name")
			}
			return nil
		})
	default:
		return nil
	}
	if !integer || number < 0 || number > most {
		return fmt.Errorf("node %d: attribute %s: want a whole number, 0 to %d", n.id, name, most)
	}
	switch name {
	case "comm_type":
		n.comm = int16(number)
	case "comm_src":
		n.src = int32(number)
	case "comm_dst":
		n.dst = int32(number)
	case "comm_size":
		n.bytes = number
	case "comm_tag":
		n.tag = number
	}
	return nil
}

// resolve replaces the ids of dependencies by indices in the trace, and reads the process groups
// of metadata nodes.
func (tr *trace) resolve() error {
	order := indexed(len(tr.nodes), func(i int) int32 { return int32(i) }) // indices sorted by id
	byID := func(a, b int32) int { return cmp.Compare(tr.nodes[a].id, tr.nodes[b].id) }
	slices.SortStableFunc(order, byID)
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; tr.nodes[a].id == tr.nodes[b].id {
			return fmt.Errorf("%s: message %d, node %d: message %d has the same id", tr.file, b+1, tr.nodes[b].id, a+1)
		}
	}
	for i := range tr.nodes {
		n := &tr.nodes[i]
		for k, id := range n.deps {
			at, ok := slices.BinarySearchFunc(order, id, func(i int32, id uint64) int { return cmp.Compare(tr.nodes[i].id, id) })
			if !ok {
				return tr.wrong(n, "it depends on node %d, which the trace does not have", id)
			}
			n.deps[k] = uint64(order[at])
		}
		slices.Sort(n.deps)
		n.deps = slices.Compact(n.deps)
		if n.kind == etMetadata && bytes.Contains(n.values, []byte("pg_name")) {
			if err := tr.processGroups(n.values); err != nil {
				return tr.wrong(n, "process groups: %w", err)
			}
		}
		n.values = nil
	}
	return nil
}

// processGroups reads the groups that PyTorch records: a list of one string that contains a JSON
// list.
func (tr *trace) processGroups(values []byte) error {
	from, to := bytes.IndexByte(values, '{'), bytes.LastIndexByte(values, '}')
	if from < 0 || to < from {
		return errors.New("want a JSON list")
	}
	var list []struct {
		Name  string `json:"pg_name"`
		Ranks []int  `json:"ranks"`
	}
	if err := json.Unmarshal(slices.Concat([]byte("["), values[from:to+1], []byte("]")), &list); err != nil {
		return err
	}
	for _, g := range list {
		tr.groups[g.Name] = g.Ranks // no ranks: all ranks
	}
	return nil
}

// indexed returns n values by their index.
func indexed(n int, value func(i int) int32) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = value(i)
	}
	return list
}
