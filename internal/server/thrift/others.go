package thrift

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// This file has the calls about meters, parser value sets, hashes, ports and
// the switch as a whole. The meaning of an exception's code depends on the kind
// of call.

// The codes of exceptions about meters besides badName and badIndex.
const (
	badRates  exception = 3
	badRate   exception = 4
	meterFail exception = 6
)

// The codes of exceptions about hashes.
const (
	noCalculation  exception = 1
	otherAlgorithm exception = 2
	badParameters  exception = 3
)

// The codes of exceptions about swaps of programs.
const (
	swapDisabled  exception = 1
	ongoingSwap   exception = 2
	noOngoingSwap exception = 3
)

// Codes of exceptions of other kinds of calls.
const (
	noValueSet    exception = 1
	valueSetError exception = 2
	portError     exception = 1
	noList        exception = 1
	listError     exception = 3
	noSuchName    exception = 1
)

// zeroCode stands for code 0, which bm_get_id_from_name returns for an unknown
// kind of object.
const zeroCode exception = math.MinInt32

func otherCalls() map[string]call {
	return map[string]call{
		"bm_meter_set_rates":       meterSet,
		"bm_meter_get_rates":       meterGet,
		"bm_meter_array_set_rates": meterSetAll,

		"bm_parse_vset_add": editValueSet(func(members []dataplane.SetMember, v []byte) []dataplane.SetMember {
			return append(members, dataplane.SetMember{Value: v})
		}),
		"bm_parse_vset_remove": editValueSet(removeValue),
		"bm_parse_vset_clear":  editValueSet(func([]dataplane.SetMember, []byte) []dataplane.SetMember { return nil }),
		"bm_parse_vset_get":    getValueSet,

		"bm_set_crc16_custom_parameters": setCRC16,
		"bm_set_crc32_custom_parameters": setCRC32,
		"bm_set_toeplitz_hash_key":       setToeplitzKey, // v1model has no such algorithm

		"bm_learning_ack":             learnList(0),
		"bm_learning_ack_buffer":      learnList(0),
		"bm_learning_set_timeout":     learnList(listError),
		"bm_learning_set_buffer_size": learnList(listError),

		"bm_dev_mgr_add_port":    addPort,
		"bm_dev_mgr_remove_port": removePort,
		"bm_dev_mgr_show_ports":  showPorts,

		"bm_load_new_config": disabledSwap,
		"bm_swap_configs":    disabledSwap,
		"bm_serialize_state": serializeState,

		"bm_get_id_from_name": idOfName,
		"bm_reset_state":      resetState,
		"bm_get_config":       func(t Target, _ record) (any, exception) { return t.Program(), 0 },
		"bm_get_config_md5":   configMD5,
	}
}

func disabledSwap(Target, record) (any, exception) { return nil, swapDisabled }

// swapCalls are the calls of a server after AllowSwap.
var swapCalls = map[string]call{
	"bm_load_new_config": func(t Target, in record) (any, exception) {
		ok, err := t.(swapper).LoadConfig(in.bytesAt(1))
		switch {
		case err != nil:
			return fmt.Errorf("loading the program: %w: want the BMv2 JSON of a program", err), 0
		case !ok:
			return nil, ongoingSwap
		}
		return nil, 0
	},
	"bm_swap_configs": func(t Target, _ record) (any, exception) {
		if !t.(swapper).SwapConfigs() {
			return nil, noOngoingSwap
		}
		return nil, 0
	},
}

// ratesOf parses rates in units per microsecond, with bursts.
func ratesOf(in record, id int16) ([]dataplane.MeterRate, exception) {
	var rates []dataplane.MeterRate
	for _, r := range listAt[record](in, id) {
		rate, _ := r[1].(float64)
		burst := r.int32At(2)
		if !(rate >= 0) || math.IsInf(rate, 0) || burst < 0 {
			return nil, meterFail
		}
		rates = append(rates, dataplane.MeterRate{PerMicrosecond: rate, Burst: uint64(burst)})
	}
	return rates, 0
}

func wireRates(rates []dataplane.MeterRate) []fields {
	return lists.Map(rates, func(r dataplane.MeterRate) fields {
		return fields{{1, r.PerMicrosecond}, {2, int32(min(r.Burst, math.MaxInt32))}}
	})
}

// meterArray returns a meter by name, including direct ones.
func meterArray(t Target, in record) (*dataplane.Switch, *bmv2.MeterArray) {
	sw := t.Control()
	if sw == nil {
		return nil, nil
	}
	for _, m := range sw.Config().MeterArrays {
		if m.Name == in.textAt(2) {
			return sw, m
		}
	}
	return sw, nil
}

// checkRates validates rates like simple_switch.
func checkRates(m *bmv2.MeterArray, rates []dataplane.MeterRate) exception {
	if len(rates) != m.RateCount {
		return badRates
	}
	slowerFirst := func(a, b dataplane.MeterRate) int { return cmp.Compare(a.PerMicrosecond, b.PerMicrosecond) }
	if !slices.IsSortedFunc(rates, slowerFirst) {
		return badRate
	}
	return 0
}

// meterCell returns a cell of an indirect meter.
func meterCell(t Target, in record) (sw *dataplane.Switch, m *bmv2.MeterArray, index int, e exception) {
	sw, m = meterArray(t, in)
	index = int(in.int32At(3))
	switch {
	case m == nil:
		e = badName
	case index < 0 || index >= m.Size || m.IsDirect:
		e = badIndex
	}
	return sw, m, index, e
}

func meterSet(t Target, in record) (any, exception) {
	sw, m, index, e := meterCell(t, in)
	if e != 0 {
		return nil, e
	}
	rates, e := ratesOf(in, 4)
	if e == 0 {
		e = checkRates(m, rates)
	}
	if e == 0 && sw.Meters().Set(m.Name, index, rates) != nil {
		e = meterFail
	}
	return nil, e
}

func meterSetAll(t Target, in record) (any, exception) {
	sw, m := meterArray(t, in)
	if m == nil {
		return nil, badName
	}
	rates, e := ratesOf(in, 3)
	if e == 0 {
		e = checkRates(m, rates)
	}
	if e == 0 && sw.Meters().SetAll(m.Name, rates) != nil {
		e = meterFail
	}
	return nil, e
}

func meterGet(t Target, in record) (any, exception) {
	sw, m, index, e := meterCell(t, in)
	if e != 0 {
		return nil, e
	}
	rates, err := sw.Meters().Rates(m.Name, index)
	if err != nil {
		return nil, meterFail
	}
	return wireRates(rates), 0
}

func removeValue(members []dataplane.SetMember, v []byte) []dataplane.SetMember {
	return slices.DeleteFunc(members, func(m dataplane.SetMember) bool { return bytes.Equal(padded(m.Value, 8*len(v)), v) })
}

func editValueSet(edit func(members []dataplane.SetMember, v []byte) []dataplane.SetMember) call {
	return func(t Target, in record) (any, exception) {
		sw, _, e := valueSet(t, in)
		if e != 0 {
			return nil, e
		}
		err := sw.ValueSets().Edit(in.textAt(2), func(members []dataplane.SetMember) []dataplane.SetMember { return edit(members, in.bytesAt(3)) })
		return done(err, valueSetError)
	}
}

func getValueSet(t Target, in record) (any, exception) {
	_, members, e := valueSet(t, in)
	return members, e
}

// valueSet returns a parser's value set by name.
func valueSet(t Target, in record) (sw *dataplane.Switch, members [][]byte, e exception) {
	if sw = t.Control(); sw == nil {
		return nil, nil, noValueSet
	}
	list, err := sw.ValueSets().Get(in.textAt(2))
	if err != nil {
		return nil, nil, noValueSet
	}
	for _, m := range list {
		members = append(members, m.Value)
	}
	return sw, members, 0
}

// calculation checks that a hash exists and uses the algorithm.
func calculation(sw *dataplane.Switch, name, algo string) exception {
	if sw == nil {
		return noCalculation
	}
	for _, c := range sw.Config().Calculations {
		switch {
		case c.Name == name && c.Algo == algo:
			return 0
		case c.Name == name:
			return otherAlgorithm
		}
	}
	return noCalculation
}

func setCRC16(t Target, in record) (any, exception) {
	p := in.recordAt(3)
	number := func(id int16) uint64 { v, _ := p[id].(int16); return uint64(uint16(v)) }
	return setCRC(t, in.textAt(2), "crc16_custom", 16, p, number)
}

func setCRC32(t Target, in record) (any, exception) {
	p := in.recordAt(3)
	return setCRC(t, in.textAt(2), "crc32_custom", 32, p, func(id int16) uint64 { return uint64(uint32(p.int32At(id))) })
}

func setCRC(t Target, name, algo string, width int, p record, number func(id int16) uint64) (any, exception) {
	sw := t.Control()
	if e := calculation(sw, name, algo); e != 0 {
		return nil, e
	}
	return done(sw.Hashes().SetCRC(name, hash.CRC{
		Width: width, Poly: number(1), Init: number(2), XorOut: number(3), ReflectIn: p.boolAt(4), ReflectOut: p.boolAt(5),
	}), badParameters)
}

func setToeplitzKey(t Target, in record) (any, exception) {
	sw, name := t.Control(), in.textAt(2)
	if e := calculation(sw, name, "toeplitz"); e != 0 {
		return nil, e
	}
	return done(sw.Hashes().SetToeplitzKey(name, in.bytesAt(3)), badParameters)
}

// learnList returns a call about a digest list with a fixed reply. Only
// P4Runtime clients receive digests, so there is nothing to acknowledge or to
// configure here.
func learnList(e exception) call {
	return func(t Target, in record) (any, exception) {
		if sw := t.Control(); sw != nil {
			for _, l := range sw.Config().LearnLists {
				if l.ID == int(in.int32At(2)) {
					return nil, e
				}
			}
		}
		return nil, noList
	}
}

// idOfName returns the id of an object in the program's document.
func idOfName(t Target, in record) (any, exception) {
	sw, name := t.Control(), in.textAt(3)
	if sw == nil {
		return nil, noSuchName
	}
	c := sw.Config()
	ids := map[string]int{}
	switch in.int32At(2) {
	case 0:
		for _, p := range c.Pipelines {
			for _, x := range p.Tables {
				ids[x.Name] = x.ID
			}
		}
	case 1:
		for _, p := range c.Pipelines {
			for _, x := range p.ActionProfiles {
				ids[x.Name] = x.ID
			}
		}
	case 2:
		for _, x := range c.CounterArrays {
			ids[x.Name] = x.ID
		}
	case 3:
		for _, x := range c.MeterArrays {
			ids[x.Name] = x.ID
		}
	case 4:
		for _, x := range c.RegisterArrays {
			ids[x.Name] = x.ID
		}
	case 5:
		for _, x := range c.LearnLists {
			ids[x.Name] = x.ID
		}
	default:
		return nil, zeroCode
	}
	id, ok := ids[name]
	if !ok {
		return nil, noSuchName
	}
	return int32(id), 0
}

// resetState resets all state of the program except constant entries.
func resetState(t Target, _ record) (any, exception) {
	if sw := t.Control(); sw != nil {
		sw.Reset()
	}
	return nil, 0
}

// portsTarget is a Target that can list and change its ports.
type portsTarget interface {
	Ports() []PortInfo
	// Connect makes a network interface a port, Disconnect removes a port.
	Connect(number uint32, iface string) error
	Disconnect(number uint32) error
}

// A PortInfo is a port with the name of its interface.
type PortInfo struct {
	Number uint32
	Name   string
	Up     bool
}

// addPort rejects a file for captures, which simple_switch would write.
func addPort(t Target, in record) (any, exception) {
	number := in.int32At(2)
	p, ok := t.(portsTarget)
	if !ok || number < 0 || number > maxPort || in.textAt(3) != "" || p.Connect(uint32(number), in.textAt(1)) != nil {
		return nil, portError
	}
	return nil, 0
}

func removePort(t Target, in record) (any, exception) {
	number := in.int32At(1)
	p, ok := t.(portsTarget)
	if !ok || number < 0 || number > maxPort || p.Disconnect(uint32(number)) != nil {
		return nil, portError
	}
	return nil, 0
}

func showPorts(t Target, _ record) (any, exception) {
	list := []fields{}
	if p, ok := t.(portsTarget); ok {
		for _, x := range p.Ports() {
			list = append(list, fields{{1, int32(x.Number)}, {2, x.Name}, {3, x.Up}, {4, map[string]string{}}})
		}
	}
	return list, 0
}
