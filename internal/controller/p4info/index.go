// Package p4info looks up the objects of a P4Info: by name for manifests, by id for
// switches.
package p4info

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// An Index looks up the objects of a P4Info by name and by id.
type Index struct {
	Cookie    uint64
	Tables    []*Table
	ByName    map[string]*Table
	ByID      map[uint32]*Table
	Registers map[string]*Register
	Profiles  []*Profile
}

type Table struct {
	ID       uint32
	Name     string
	Fields   []Field
	Actions  map[string]*Action // by name without the control
	ByAction map[uint32]*Action
	Initial  *configv1.TableActionCall // default action of the program
	Size     int64
	Fixed    bool     // the entries are fixed by the program
	Begun    bool     // the program contains some entries
	locked   bool     // the default action is constant, or comes from an action profile
	Routes   bool     // its entries refer to entries of other tables
	Profile  *Profile // contains the actions of its entries; nil: the entries do
}

// Presets reports whether the table's default action can be set.
func (t *Table) Presets() bool { return !t.Fixed && !t.locked }

// A Profile is an action profile or, with a selector, an action selector.
type Profile struct {
	ID       uint32
	Name     string
	Size     int64 // number of members; 0: any
	Selector bool
}

// Members reports whether the entries of the table refer to members of an action profile
// that has no selector.
func (t *Table) Members() bool { return t.Profile != nil && !t.Profile.Selector }

type Field struct {
	ID    uint32
	Name  string
	Width int
	Kind  configv1.MatchField_MatchType
}

type Action struct {
	ID     uint32
	Name   string // name without the control
	Params []Field
}

type Register struct {
	ID      uint32
	Name    string
	Size    int
	Members []int // widths of the members, if a cell is a struct
}

// mostReplicated is the largest number of clone sessions and multicast groups.
const mostReplicated = 1 << 16

// Holds returns how many entities of a kind a switch with the program can hold.
func (x *Index) Holds() int {
	n := int64(mostReplicated)
	for _, t := range x.Tables {
		n += max(t.Size, 1024) + 1
	}
	for _, r := range x.Registers {
		n += int64(max(r.Size, 0))
	}
	for _, p := range x.Profiles {
		n += max(p.Size, 1024)
	}
	return int(min(n, 1<<30))
}

func New(info *configv1.P4Info, config []byte) (*Index, error) {
	if info == nil {
		return nil, errors.New("there is no P4Info")
	}
	cookie, err := cookieOf(info, config)
	if err != nil {
		return nil, err
	}
	x := &Index{
		Cookie: cookie,
		ByName: map[string]*Table{}, ByID: map[uint32]*Table{},
		Registers: map[string]*Register{},
	}
	actions := map[uint32]*Action{}
	for _, a := range info.GetActions() {
		info := &Action{ID: a.GetPreamble().GetId(), Name: manifest.Short(a.GetPreamble().GetName())}
		for _, p := range a.GetParams() {
			info.Params = append(info.Params, Field{ID: p.GetId(), Name: p.GetName(), Width: int(p.GetBitwidth())})
		}
		actions[info.ID] = info
	}
	profiles := map[uint32]*Profile{}
	for _, p := range info.GetActionProfiles() {
		made := &Profile{ID: p.GetPreamble().GetId(), Name: p.GetPreamble().GetName(), Size: p.GetSize(), Selector: p.GetWithSelector()}
		x.Profiles, profiles[made.ID] = append(x.Profiles, made), made
	}
	for _, t := range info.GetTables() {
		x.addTable(t, actions, profiles)
	}
	for _, r := range info.GetRegisters() {
		s := info.GetTypeInfo().GetStructs()[r.GetTypeSpec().GetStruct().GetName()]
		info := &Register{ID: r.GetPreamble().GetId(), Name: r.GetPreamble().GetName(), Size: int(r.GetSize())}
		for _, m := range s.GetMembers() {
			info.Members = append(info.Members, int(m.GetTypeSpec().GetBitstring().GetBit().GetBitwidth()))
		}
		x.Registers[info.Name] = info
	}
	return x, nil
}

func (x *Index) addTable(t *configv1.Table, actions map[uint32]*Action, profiles map[uint32]*Profile) {
	info := &Table{
		ID: t.GetPreamble().GetId(), Name: t.GetPreamble().GetName(), Size: t.GetSize(), Fixed: t.GetIsConstTable(), Begun: t.GetHasInitialEntries(),
		locked:  t.GetConstDefaultActionId() != 0,
		Initial: t.GetInitialDefaultAction(), Profile: profiles[t.GetImplementationId()],
		Actions: map[string]*Action{}, ByAction: map[uint32]*Action{},
	}
	for _, f := range t.GetMatchFields() {
		info.Fields = append(info.Fields, Field{
			ID: f.GetId(), Name: f.GetName(), Width: int(f.GetBitwidth()), Kind: f.GetMatchType(),
		})
	}
	for _, ref := range t.GetActionRefs() {
		if a := actions[ref.GetId()]; a != nil {
			info.Actions[a.Name], info.ByAction[a.ID] = a, a
		}
	}
	x.Tables = append(x.Tables, info)
	x.ByName[info.Name], x.ByID[info.ID] = info, info
}

// Match checks a manifest against the P4Info of its program and records its tables.
func (x *Index) Match(m *manifest.Manifest, info *configv1.P4Info) error {
	if err := manifest.Check(m, info); err != nil {
		return fmt.Errorf("the manifest of %s does not match its program: %w", m.Scheme, err)
	}
	for _, t := range m.Tables {
		x.ByName[t.Name].Routes = t.Purpose == manifest.Route
	}
	return nil
}

// cookieOf returns a number that identifies a program. Two different programs have the same
// number with probability 2^-64.
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
