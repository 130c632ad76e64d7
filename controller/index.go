package controller

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/manifest"
)

// An index finds what a P4Info is about by name, as manifests name it, and by
// id, as switches do.
type index struct {
	cookie    uint64
	tables    []*tableInfo
	byName    map[string]*tableInfo
	byID      map[uint32]*tableInfo
	registers map[string]*registerInfo
	byReg     map[uint32]*registerInfo
}

type tableInfo struct {
	id       uint32
	name     string
	fields   []fieldInfo
	actions  map[string]*actionInfo // by the name without its control
	byAction map[uint32]*actionInfo
	initial  *p4v1.Action // the default action of the program
	size     int64
	fixed    bool // the entries are the program's
	begun    bool // some are
	locked   bool // the default action is, or is that of an action profile
	routes   bool // its entries refer to those of others
}

// presets reports whether the table's default action can be set.
func (t *tableInfo) presets() bool { return !t.fixed && !t.locked }

type fieldInfo struct {
	id    uint32
	name  string
	width int
	kind  configv1.MatchField_MatchType
}

type actionInfo struct {
	id     uint32
	name   string // without its control
	params []fieldInfo
}

type registerInfo struct {
	id     uint32
	name   string
	size   int
	halves []int // the widths of the members, where a cell is a struct
}

// mostReplicated is how many clone sessions and multicast groups there can be.
const mostReplicated = 1 << 16

// holds is how many entities of a kind a switch with the program can have.
func (x *index) holds() int {
	n := int64(mostReplicated)
	for _, t := range x.tables {
		n += max(t.size, 1024) + 1
	}
	for _, r := range x.registers {
		n += int64(max(r.size, 0))
	}
	return int(min(n, 1<<30))
}

func newIndex(info *configv1.P4Info, config []byte) (*index, error) {
	if info == nil {
		return nil, errors.New("there is no P4Info")
	}
	cookie, err := cookieOf(info, config)
	if err != nil {
		return nil, err
	}
	x := &index{
		cookie: cookie,
		byName: map[string]*tableInfo{}, byID: map[uint32]*tableInfo{},
		registers: map[string]*registerInfo{}, byReg: map[uint32]*registerInfo{},
	}
	actions := map[uint32]*actionInfo{}
	for _, a := range info.GetActions() {
		info := &actionInfo{id: a.GetPreamble().GetId(), name: manifest.Short(a.GetPreamble().GetName())}
		for _, p := range a.GetParams() {
			info.params = append(info.params, fieldInfo{id: p.GetId(), name: p.GetName(), width: int(p.GetBitwidth())})
		}
		actions[info.id] = info
	}
	for _, t := range info.GetTables() {
		x.addTable(t, actions)
	}
	for _, r := range info.GetRegisters() {
		s := info.GetTypeInfo().GetStructs()[r.GetTypeSpec().GetStruct().GetName()]
		info := &registerInfo{id: r.GetPreamble().GetId(), name: r.GetPreamble().GetName(), size: int(r.GetSize())}
		for _, m := range s.GetMembers() {
			info.halves = append(info.halves, int(m.GetTypeSpec().GetBitstring().GetBit().GetBitwidth()))
		}
		x.registers[info.name], x.byReg[info.id] = info, info
	}
	return x, nil
}

func (x *index) addTable(t *configv1.Table, actions map[uint32]*actionInfo) {
	info := &tableInfo{
		id: t.GetPreamble().GetId(), name: t.GetPreamble().GetName(), size: t.GetSize(), fixed: t.GetIsConstTable(), begun: t.GetHasInitialEntries(),
		locked:  t.GetConstDefaultActionId() != 0,
		initial: initialCall(t.GetInitialDefaultAction()),
		actions: map[string]*actionInfo{}, byAction: map[uint32]*actionInfo{},
	}
	for _, f := range t.GetMatchFields() {
		info.fields = append(info.fields, fieldInfo{
			id: f.GetId(), name: f.GetName(), width: int(f.GetBitwidth()), kind: f.GetMatchType(),
		})
	}
	for _, ref := range t.GetActionRefs() {
		if a := actions[ref.GetId()]; a != nil {
			info.actions[a.name], info.byAction[a.id] = a, a
		}
	}
	x.tables = append(x.tables, info)
	x.byName[info.name], x.byID[info.id] = info, info
}

// initialCall is what a table's first default action does.
func initialCall(d *configv1.TableActionCall) *p4v1.Action {
	a := &p4v1.Action{ActionId: d.GetActionId()}
	for _, arg := range d.GetArguments() {
		a.Params = append(a.Params, &p4v1.Action_Param{ParamId: arg.GetParamId(), Value: arg.GetValue()})
	}
	return a
}

// match holds a manifest against the P4Info of its program, and notes what it
// says about tables.
func (x *index) match(m *manifest.Manifest, info *configv1.P4Info) error {
	if err := manifest.Check(m, info); err != nil {
		return fmt.Errorf("the manifest of %s does not match its program: %w", m.Scheme, err)
	}
	for _, t := range m.Tables {
		x.byName[t.Name].routes = t.Purpose == manifest.Route
	}
	return nil
}

// cookieOf is a number that stands for a program: two that differ have the same
// one with a chance of 2^-64.
func cookieOf(info *configv1.P4Info, config []byte) (uint64, error) {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(info)
	if err != nil {
		return 0, fmt.Errorf("encoding the P4Info: %w", err)
	}
	h := sha256.New()
	binary.Write(h, binary.BigEndian, uint64(len(text)))
	h.Write(text)
	h.Write(config)
	return binary.BigEndian.Uint64(h.Sum(nil)), nil
}
