package thrift

import (
	"crypto/md5"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
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
		"set_egress_queue_depth":            ofQueues(1, setDepth),
		"set_egress_queue_rate":             ofQueues(1, setRate),
		"set_all_egress_queue_depths":       ofQueues(0, setDepth),
		"set_all_egress_queue_rates":        ofQueues(0, setRate),
		"set_egress_priority_queue_depth":   ofQueues(2, setDepth),
		"set_egress_priority_queue_rate":    ofQueues(2, setRate),
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
		"bm_register_read":        ofCells(Target.RegisterSize, oneCell, registerRead),
		"bm_register_read_all":    ofCells(Target.RegisterSize, allCells, registerReadAll),
		"bm_register_write":       ofCells(Target.RegisterSize, oneCell, registerWrite(4)),
		"bm_register_write_range": ofCells(Target.RegisterSize, someCells, registerWrite(5)),
		"bm_register_reset":       ofCells(Target.RegisterSize, allCells, registerReset),
		"bm_counter_read":         ofCells(Target.CounterSize, oneCell, counterRead),
		"bm_counter_write":        ofCells(Target.CounterSize, oneCell, counterWrite),
		"bm_counter_reset_all":    ofCells(Target.CounterSize, allCells, counterReset),
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

// done is the answer of a call that returns nothing, and refused where it has
// not worked.
func done(err error, refused exception) (any, exception) {
	if err != nil {
		return nil, refused
	}
	return nil, 0
}

// A part is which cells of an array of some size a call is about.
type part func(in record, size int) (from, to int)

func oneCell(in record, _ int) (from, to int) {
	from = int(in.int32At(3))
	return from, from + 1
}

func someCells(in record, _ int) (from, to int) { return int(in.int32At(3)), int(in.int32At(4)) }

func allCells(_ record, size int) (from, to int) { return 0, size }

// A cellCall is a call about cells that there are.
type cellCall func(t Target, in record, name string, from, to int) (any, exception)

// ofCells makes a call of f: one that refuses registers or counters, and cells
// of them, that there are not.
func ofCells(sizeOf func(t Target, name string) (int, bool), which part, f cellCall) call {
	return func(t Target, in record) (any, exception) {
		name := in.textAt(2)
		size, ok := sizeOf(t, name)
		from, to := which(in, size)
		switch {
		case !ok:
			return nil, badName
		case from < 0 || to < from || to > size:
			return nil, badIndex
		}
		return f(t, in, name, from, to)
	}
}

func registerRead(t Target, _ record, name string, from, to int) (any, exception) {
	v, err := t.ReadRegister(name, from, to)
	if err != nil {
		return nil, otherError
	}
	return saturate(v[0]), 0
}

func registerReadAll(t Target, _ record, name string, from, to int) (any, exception) {
	values, err := t.ReadRegister(name, from, to)
	if err != nil {
		return nil, otherError
	}
	return values, 0
}

// registerWrite writes the argument of an id.
func registerWrite(value int16) cellCall {
	return func(t Target, in record, name string, from, to int) (any, exception) {
		return done(t.WriteRegister(name, from, to, uint64(in.int64At(value))), otherError)
	}
}

func registerReset(t Target, _ record, name string, from, to int) (any, exception) {
	return done(t.WriteRegister(name, from, to, 0), otherError)
}

func counterRead(t Target, _ record, name string, from, _ int) (any, exception) {
	packets, bytes, err := t.ReadCounter(name, from)
	if err != nil {
		return nil, otherError
	}
	return fields{{1, saturate(bytes)}, {2, saturate(packets)}}, 0
}

func counterWrite(t Target, in record, name string, from, to int) (any, exception) {
	value := in.recordAt(4)
	return done(t.WriteCounter(name, from, to, uint64(value.int64At(2)), uint64(value.int64At(1))), otherError)
}

func counterReset(t Target, _ record, name string, from, to int) (any, exception) {
	return done(t.WriteCounter(name, from, to, 0, 0), otherError)
}

func configMD5(t Target, _ record) (any, exception) {
	sum := md5.Sum(t.Program())
	return sum[:], 0
}

// A setting sets what the argument of an id says, for the queues of a port and a
// priority as SetQueueDepth names them.
type setting func(t Target, in record, id int16, port, priority int) (done bool)

// ofQueues makes a call of set whose first arguments are so many of a port and a
// priority. It declares no exception: it tells of an error by its result.
func ofQueues(named int16, set setting) call {
	return func(t Target, in record) (any, exception) {
		which := [2]int{-1, -1}
		for i := range named {
			if which[i] = int(in.int32At(i + 1)); which[i] < 0 {
				return resultError, 0
			}
		}
		if !set(t, in, named+1, which[0], which[1]) {
			return resultError, 0
		}
		return resultOK, 0
	}
}

func setDepth(t Target, in record, id int16, port, priority int) (done bool) {
	packets := in.int32At(id)
	return packets >= 0 && t.SetQueueDepth(port, priority, int(packets)) == nil
}

func setRate(t Target, in record, id int16, port, priority int) (done bool) {
	pps := in.int64At(id)
	return pps >= 0 && t.SetQueueRate(port, priority, uint64(pps)) == nil
}

// sessionFields is where a mirroring session leads to, without what is -1.
func sessionFields(port, group int) fields {
	config := fields{}
	if port >= 0 {
		config = append(config, field{1, int32(port)})
	}
	if group >= 0 {
		config = append(config, field{2, int32(group)})
	}
	return config
}

// session is the opposite of sessionFields.
func (r record) session() (port, group int) {
	port, group = -1, -1
	if v, ok := r[1].(int32); ok {
		port = int(v)
	}
	if v, ok := r[2].(int32); ok {
		group = int(v)
	}
	return port, group
}

func sessionAdd(t Target, in record) (any, exception) {
	port, group := in.recordAt(2).session()
	return done(t.SetSession(int(in.int32At(1)), port, group), noSession)
}

func sessionDelete(t Target, in record) (any, exception) {
	return done(t.DeleteSession(int(in.int32At(1))), noSession)
}

func sessionGet(t Target, in record) (any, exception) {
	port, group, ok := t.Session(int(in.int32At(1)))
	if !ok {
		return nil, noSession
	}
	return sessionFields(port, group), 0
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
