package thrift

import (
	"crypto/md5"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane"
)

// A Target is the switch behind a Server. Its methods may be called at the
// same time. Cells are numbered from 0; ranges exclude their end.
type Target interface {
	// RegisterSize is the number of cells of a register; ok is false if there
	// is no such register.
	RegisterSize(name string) (cells int, ok bool)
	// ReadRegister returns cells as they are at one moment. A cell that has
	// more than 64 bits set is the largest number.
	ReadRegister(name string, from, to int) ([]uint64, error)
	WriteRegister(name string, from, to int, value uint64) error

	CounterSize(name string) (cells int, ok bool)
	ReadCounter(name string, index int) (packets, bytes uint64, err error)
	WriteCounter(name string, from, to int, packets, bytes uint64) error

	// SetQueueDepth and SetQueueRate are for one queue, for all of a port
	// (priority -1) or for all there are (port -1 too). A rate of 0 is none.
	SetQueueDepth(port, priority, packets int) error
	SetQueueRate(port, priority int, packetsPerSecond uint64) error

	// Session returns a mirroring session; its port and its multicast group
	// are -1 if it has none.
	Session(id int) (port, group int, ok bool)
	SetSession(id, port, group int) error
	DeleteSession(id int) error

	// PortCounts are what the ports have taken in, sent and lost, by number.
	PortCounts() []bmv2.PortCounts

	// Switch is the data plane of the program that runs, nil if none does.
	Switch() *dataplane.Switch
	// Elapsed is the clock of the data plane's timestamps.
	Elapsed() time.Duration
	// Program is the BMv2 JSON that runs, empty if none does.
	Program() []byte
}

// An exception is an error that a call declares: a struct with a code.
type exception int32

// The codes of exceptions. They mean the same for registers and counters.
const (
	badName     exception = 1
	badIndex    exception = 2
	otherError  exception = 3
	noSession   exception = 1
	resultOK              = int32(0)
	resultError           = int32(1)
)

// A call is what a method does: arguments in, a value for field 0 of the
// result out (nil for void), or the exception for field 1.
type call func(t Target, in record) (any, exception)

// services are the calls by service and name.
var services = sync.OnceValue(func() map[string]map[string]call {
	return map[string]map[string]call{
		"standard":       joined(arrayCalls(), tableCalls(), profileCalls(), otherCalls()),
		"simple_pre_lag": multicastCalls(),
		"simple_switch":  switchCalls(),
		ownService: {
			"port_counts": func(t Target, _ record) (any, exception) { return bmv2.EncodePorts(t.PortCounts()), 0 },
		},
	}
})

func switchCalls() map[string]call {
	return map[string]call{
		"set_egress_queue_depth":            queueDepth,
		"set_egress_queue_rate":             queueRate,
		"set_all_egress_queue_depths":       allDepths,
		"set_all_egress_queue_rates":        allRates,
		"set_egress_priority_queue_depth":   priorityDepth,
		"set_egress_priority_queue_rate":    priorityRate,
		"mirroring_session_add":             sessionAdd,
		"mirroring_session_delete":          sessionDelete,
		"mirroring_session_get":             sessionGet,
		"mirroring_mapping_add":             mappingAdd,
		"mirroring_mapping_delete":          mappingDelete,
		"mirroring_mapping_get_egress_port": mappingGet,
		"get_time_elapsed_us":               func(t Target, _ record) (any, exception) { return t.Elapsed().Microseconds(), 0 },
		"get_time_since_epoch_us":           func(Target, record) (any, exception) { return time.Now().UnixMicro(), 0 },
	}
}

func arrayCalls() map[string]call {
	return map[string]call{
		"bm_register_read":        registerRead,
		"bm_register_read_all":    registerReadAll,
		"bm_register_write":       registerWrite,
		"bm_register_write_range": registerWriteRange,
		"bm_register_reset":       registerReset,
		"bm_counter_read":         counterRead,
		"bm_counter_write":        counterWrite,
		"bm_counter_reset_all":    counterReset,
	}
}

func joined(parts ...map[string]call) map[string]call {
	all := map[string]call{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}

// ownService is of calls that BMv2 does not have.
const ownService = "p4lb"

// saturate fits a number into the 64 signed bits of the wire.
func saturate(v uint64) int64 { return int64(min(v, math.MaxInt64)) }

// cells checks a range of a register or counter.
func cells(size int, ok bool, from, to int32) exception {
	switch {
	case !ok:
		return badName
	case from < 0 || to < from || int(to) > size:
		return badIndex
	}
	return 0
}

func done(err error) (any, exception) {
	if err != nil {
		return nil, otherError
	}
	return nil, 0
}

// index is the range of one cell, empty and thus refused where it would
// overflow.
func index(i int32) (from, to int32) {
	if i == math.MaxInt32 {
		return -1, -1
	}
	return i, i + 1
}

func registerRead(t Target, in record) (any, exception) {
	name := in.textAt(2)
	from, to := index(in.int32At(3))
	size, ok := t.RegisterSize(name)
	if e := cells(size, ok, from, to); e != 0 {
		return nil, e
	}
	v, err := t.ReadRegister(name, int(from), int(to))
	if err != nil {
		return nil, otherError
	}
	return saturate(v[0]), 0
}

func registerReadAll(t Target, in record) (any, exception) {
	name := in.textAt(2)
	size, ok := t.RegisterSize(name)
	if !ok {
		return nil, badName
	}
	values, err := t.ReadRegister(name, 0, size)
	if err != nil {
		return nil, otherError
	}
	return values, 0
}

func registerWrite(t Target, in record) (any, exception) {
	from, to := index(in.int32At(3))
	return writeCells(t, in.textAt(2), from, to, in.int64At(4))
}

func registerWriteRange(t Target, in record) (any, exception) {
	return writeCells(t, in.textAt(2), in.int32At(3), in.int32At(4), in.int64At(5))
}

func writeCells(t Target, name string, from, to int32, v int64) (any, exception) {
	size, ok := t.RegisterSize(name)
	if e := cells(size, ok, from, to); e != 0 {
		return nil, e
	}
	return done(t.WriteRegister(name, int(from), int(to), uint64(v)))
}

func registerReset(t Target, in record) (any, exception) {
	name := in.textAt(2)
	size, ok := t.RegisterSize(name)
	if !ok {
		return nil, badName
	}
	return done(t.WriteRegister(name, 0, size, 0))
}

func counterRead(t Target, in record) (any, exception) {
	name := in.textAt(2)
	from, to := index(in.int32At(3))
	size, ok := t.CounterSize(name)
	if e := cells(size, ok, from, to); e != 0 {
		return nil, e
	}
	packets, bytes, err := t.ReadCounter(name, int(from))
	if err != nil {
		return nil, otherError
	}
	return fields{{1, saturate(bytes)}, {2, saturate(packets)}}, 0
}

func counterWrite(t Target, in record) (any, exception) {
	name := in.textAt(2)
	from, to := index(in.int32At(3))
	size, ok := t.CounterSize(name)
	if e := cells(size, ok, from, to); e != 0 {
		return nil, e
	}
	value := in.recordAt(4)
	return done(t.WriteCounter(name, int(from), int(to), uint64(value.int64At(2)), uint64(value.int64At(1))))
}

func counterReset(t Target, in record) (any, exception) {
	name := in.textAt(2)
	size, ok := t.CounterSize(name)
	if !ok {
		return nil, badName
	}
	return done(t.WriteCounter(name, 0, size, 0, 0))
}

func configMD5(t Target, _ record) (any, exception) {
	sum := md5.Sum(t.Program())
	return sum[:], 0
}

// result is how the calls that declare no exception tell of an error.
func result(err error) (any, exception) {
	if err != nil {
		return resultError, 0
	}
	return resultOK, 0
}

func queueDepth(t Target, in record) (any, exception) {
	return setDepth(t, in.int32At(1), -1, in.int32At(2))
}

func priorityDepth(t Target, in record) (any, exception) {
	if in.int32At(2) < 0 {
		return resultError, 0
	}
	return setDepth(t, in.int32At(1), in.int32At(2), in.int32At(3))
}

func setDepth(t Target, port, priority, packets int32) (any, exception) {
	if port < 0 || packets < 0 {
		return resultError, 0
	}
	return result(t.SetQueueDepth(int(port), int(priority), int(packets)))
}

func allDepths(t Target, in record) (any, exception) {
	if in.int32At(1) < 0 {
		return resultError, 0
	}
	return result(t.SetQueueDepth(-1, -1, int(in.int32At(1))))
}

func queueRate(t Target, in record) (any, exception) {
	return setRate(t, in.int32At(1), -1, in.int64At(2))
}

func priorityRate(t Target, in record) (any, exception) {
	if in.int32At(2) < 0 {
		return resultError, 0
	}
	return setRate(t, in.int32At(1), in.int32At(2), in.int64At(3))
}

func setRate(t Target, port, priority int32, pps int64) (any, exception) {
	if port < 0 || pps < 0 {
		return resultError, 0
	}
	return result(t.SetQueueRate(int(port), int(priority), uint64(pps)))
}

func allRates(t Target, in record) (any, exception) {
	if in.int64At(1) < 0 {
		return resultError, 0
	}
	return result(t.SetQueueRate(-1, -1, uint64(in.int64At(1))))
}

func sessionAdd(t Target, in record) (any, exception) {
	port, group := -1, -1
	config := in.recordAt(2)
	if v, ok := config[1].(int32); ok {
		port = int(v)
	}
	if v, ok := config[2].(int32); ok {
		group = int(v)
	}
	if t.SetSession(int(in.int32At(1)), port, group) != nil {
		return nil, noSession
	}
	return nil, 0
}

func sessionDelete(t Target, in record) (any, exception) {
	if t.DeleteSession(int(in.int32At(1))) != nil {
		return nil, noSession
	}
	return nil, 0
}

func sessionGet(t Target, in record) (any, exception) {
	port, group, ok := t.Session(int(in.int32At(1)))
	if !ok {
		return nil, noSession
	}
	config := fields{}
	if port >= 0 {
		config = append(config, field{1, int32(port)})
	}
	if group >= 0 {
		config = append(config, field{2, int32(group)})
	}
	return config, 0
}

// mappingAdd and mappingDelete answer with whether they did it, as a number.
func mappingAdd(t Target, in record) (any, exception) {
	return flag(t.SetSession(int(in.int32At(1)), int(in.int32At(2)), -1) == nil), 0
}

func mappingDelete(t Target, in record) (any, exception) {
	return flag(t.DeleteSession(int(in.int32At(1))) == nil), 0
}

func flag(done bool) int32 {
	if done {
		return 1
	}
	return 0
}

func mappingGet(t Target, in record) (any, exception) {
	port, _, ok := t.Session(int(in.int32At(1)))
	if !ok {
		port = -1
	}
	return int32(port), 0
}
