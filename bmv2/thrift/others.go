package thrift

import (
	"bytes"
	"math"
	"slices"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane"
	"github.com/p4lb/p4lb/dataplane/hash"
)

// What follows are the calls about meters, parser value sets, hashes, ports and
// the switch as a whole. What a code of an exception means depends on the
// kind of the call.

// The codes of exceptions about meters beside badName and badIndex.
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

// swapDisabled is the code of calls that change the program: P4Runtime does that
// here, with the P4Info that belongs to it.
const swapDisabled exception = 1

// Codes of exceptions that have but one or two.
const (
	noValueSet    exception = 1
	valueSetError exception = 2
	portError     exception = 1
	noList        exception = 1
	listError     exception = 3
	noSuchName    exception = 1
)

// zeroCode stands for the code 0, which is an exception too where the kind of a
// name is not one.
const zeroCode exception = math.MinInt32

func otherCalls() map[string]call {
	return map[string]call{
		"bm_meter_set_rates":       meterSet,
		"bm_meter_get_rates":       meterGet,
		"bm_meter_array_set_rates": meterSetAll,

		"bm_parse_vset_add":    editValueSet(func(members [][]byte, v []byte) [][]byte { return append(members, v) }),
		"bm_parse_vset_remove": editValueSet(removeValue),
		"bm_parse_vset_clear":  editValueSet(func([][]byte, []byte) [][]byte { return nil }),
		"bm_parse_vset_get":    getValueSet,

		"bm_set_crc16_custom_parameters": setCRC16,
		"bm_set_crc32_custom_parameters": setCRC32,
		"bm_set_toeplitz_hash_key":       setToeplitzKey, // no algorithm of v1model

		"bm_learning_ack":             learnList(0),
		"bm_learning_ack_buffer":      learnList(0),
		"bm_learning_set_timeout":     learnList(listError),
		"bm_learning_set_buffer_size": learnList(listError),

		"bm_dev_mgr_add_port":    addPort,
		"bm_dev_mgr_remove_port": removePort,
		"bm_dev_mgr_show_ports":  showPorts,

		"bm_load_new_config": func(Target, record) (any, exception) { return nil, swapDisabled },
		"bm_swap_configs":    func(Target, record) (any, exception) { return nil, swapDisabled },

		"bm_get_id_from_name": idOfName,
		"bm_reset_state":      resetState,
		"bm_get_config":       func(t Target, _ record) (any, exception) { return t.Program(), 0 },
		"bm_get_config_md5":   configMD5,
	}
}

// ratesOf reads rates: units per microsecond, and bursts.
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
	out := []fields{}
	for _, r := range rates {
		out = append(out, fields{{1, r.PerMicrosecond}, {2, int32(min(r.Burst, math.MaxInt32))}})
	}
	return out
}

// meterArray finds a meter, direct ones too, by its name.
func meterArray(t Target, in record) (*dataplane.Switch, *bmv2.MeterArray) {
	sw := t.Switch()
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

// checkRates finds what is wrong with rates as simple_switch does.
func checkRates(m *bmv2.MeterArray, rates []dataplane.MeterRate) exception {
	if len(rates) != m.RateCount {
		return badRates
	}
	if !slices.IsSortedFunc(rates, func(a, b dataplane.MeterRate) int {
		switch {
		case a.PerMicrosecond < b.PerMicrosecond:
			return -1
		case a.PerMicrosecond > b.PerMicrosecond:
			return 1
		}
		return 0
	}) {
		return badRate
	}
	return 0
}

func meterSet(t Target, in record) (any, exception) {
	sw, m := meterArray(t, in)
	index := in.int32At(3)
	if m == nil {
		return nil, badName
	}
	if index < 0 || int(index) >= m.Size || m.IsDirect {
		return nil, badIndex
	}
	rates, e := ratesOf(in, 4)
	if e == 0 {
		e = checkRates(m, rates)
	}
	if e == 0 && sw.MeterSet(m.Name, int(index), rates) != nil {
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
	if e == 0 && sw.MeterSetAll(m.Name, rates) != nil {
		e = meterFail
	}
	return nil, e
}

func meterGet(t Target, in record) (any, exception) {
	sw, m := meterArray(t, in)
	index := in.int32At(3)
	if m == nil {
		return nil, badName
	}
	if index < 0 || int(index) >= m.Size || m.IsDirect {
		return nil, badIndex
	}
	rates, err := sw.MeterRates(m.Name, int(index))
	if err != nil {
		return nil, meterFail
	}
	return wireRates(rates), 0
}

func removeValue(members [][]byte, v []byte) [][]byte {
	return slices.DeleteFunc(members, func(m []byte) bool { return bytes.Equal(padded(m, 8*len(v)), v) })
}

func editValueSet(edit func(members [][]byte, v []byte) [][]byte) call {
	return func(t Target, in record) (any, exception) {
		sw, name := t.Switch(), in.textAt(2)
		if sw == nil {
			return nil, noValueSet
		}
		if _, err := sw.ValueSet(name); err != nil {
			return nil, noValueSet
		}
		if sw.EditValueSet(name, func(members [][]byte) [][]byte { return edit(members, in.bytesAt(3)) }) != nil {
			return nil, valueSetError
		}
		return nil, 0
	}
}

func getValueSet(t Target, in record) (any, exception) {
	sw := t.Switch()
	if sw == nil {
		return nil, noValueSet
	}
	members, err := sw.ValueSet(in.textAt(2))
	if err != nil {
		return nil, noValueSet
	}
	return append([][]byte{}, members...), 0
}

// calculation is the algorithm of a hash; ok is false if there is none of the
// name.
func calculation(sw *dataplane.Switch, name string) (algo string, ok bool) {
	if sw == nil {
		return "", false
	}
	for _, c := range sw.Config().Calculations {
		if c.Name == name {
			return c.Algo, true
		}
	}
	return "", false
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
	switch has, ok := calculation(t.Switch(), name); {
	case !ok:
		return nil, noCalculation
	case has != algo:
		return nil, otherAlgorithm
	}
	err := t.Switch().SetCRC(name, hash.CRC{
		Width: width, Poly: number(1), Init: number(2), XorOut: number(3), ReflectIn: p.boolAt(4), ReflectOut: p.boolAt(5),
	})
	if err != nil {
		return nil, badParameters
	}
	return nil, 0
}

func setToeplitzKey(t Target, in record) (any, exception) {
	switch algo, ok := calculation(t.Switch(), in.textAt(2)); {
	case !ok:
		return nil, noCalculation
	case algo != "toeplitz":
		return nil, otherAlgorithm
	case t.Switch().SetToeplitzKey(in.textAt(2), in.bytesAt(3)) != nil:
		return nil, badParameters
	}
	return nil, 0
}

// learnList makes a call about a list of digests that answers with a code.
// Digests go to P4Runtime's clients alone: nothing waits for an acknowledgement
// here, and there is nothing to set.
func learnList(e exception) call {
	return func(t Target, in record) (any, exception) {
		if sw := t.Switch(); sw != nil {
			for _, l := range sw.Config().LearnLists {
				if l.ID == int(in.int32At(2)) {
					return nil, e
				}
			}
		}
		return nil, noList
	}
}

// idOfName is the number that the program's document gives a thing.
func idOfName(t Target, in record) (any, exception) {
	sw, name := t.Switch(), in.textAt(3)
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

// resetState empties all that a program keeps, but for constant entries.
func resetState(t Target, _ record) (any, exception) {
	if sw := t.Switch(); sw != nil {
		sw.Reset()
	}
	return nil, 0
}

// Ports is a Target that tells of its ports and may get others.
type Ports interface {
	Ports() []PortInfo
	// Connect makes a network interface a port, Disconnect takes one away.
	Connect(number uint32, iface string) error
	Disconnect(number uint32) error
}

// A PortInfo is a port with what is behind it.
type PortInfo struct {
	Number uint32
	Name   string
	Up     bool
}

// addPort takes no file for captures, as simple_switch would: it has none of its
// own to write.
func addPort(t Target, in record) (any, exception) {
	number := in.int32At(2)
	p, ok := t.(Ports)
	if !ok || number < 0 || number > maxPort || in.textAt(3) != "" || p.Connect(uint32(number), in.textAt(1)) != nil {
		return nil, portError
	}
	return nil, 0
}

func removePort(t Target, in record) (any, exception) {
	number := in.int32At(1)
	p, ok := t.(Ports)
	if !ok || number < 0 || number > maxPort || p.Disconnect(uint32(number)) != nil {
		return nil, portError
	}
	return nil, 0
}

func showPorts(t Target, _ record) (any, exception) {
	list := []fields{}
	if p, ok := t.(Ports); ok {
		for _, x := range p.Ports() {
			list = append(list, fields{{1, int32(x.Number)}, {2, x.Name}, {3, x.Up}, {4, map[string]string{}}})
		}
	}
	return list, 0
}
