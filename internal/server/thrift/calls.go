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

// A Target is the switch behind a Server. Its methods must be safe for
// concurrent use. Cells are numbered from 0; ranges exclude their end.
type Target interface {
	// RegisterSize returns the number of cells of a register; ok is false if
	// there is no such register.
	RegisterSize(name string) (cells int, ok bool)
	// ReadRegister returns cells, read at one moment. A cell with more than 64
	// significant bits is returned as the largest uint64.
	ReadRegister(name string, from, to int) ([]uint64, error)
	WriteRegister(name string, from, to int, value uint64) error

	CounterSize(name string) (cells int, ok bool)
	ReadCounter(name string, index int) (packets, bytes uint64, err error)
	WriteCounter(name string, from, to int, packets, bytes uint64) error

	// SetQueueDepth and SetQueueRate apply to one queue, to all queues of a
	// port (priority -1), or to all queues (port -1 too). Rate 0 stands for no
	// limit.
	SetQueueDepth(port, priority, packets int) error
	SetQueueRate(port, priority int, packetsPerSecond uint64) error

	// Session returns the port and the multicast group of a mirroring session;
	// -1 stands for none.
	Session(id int) (port, group int, ok bool)
	SetSession(id, port, group int) error
	DeleteSession(id int) error

	// PortCounts returns the packets received, sent and dropped by each port,
	// by number.
	PortCounts() []bmv2.PortCounts

	// Switch returns the running program in the data plane, or nil. The multicast
	// groups belong to it.
	Switch() *dataplane.Switch
	// Control returns the program that calls refer to: the loaded one until the
	// swap, else the running one.
	Control() *dataplane.Switch
	// Elapsed returns the clock used for timestamps in the data plane.
	Elapsed() time.Duration
	// Program returns the BMv2 JSON of the program of Control, or nil.
	Program() []byte
}

// A swapper is a Target that can replace its program.
type swapper interface {
	// LoadConfig loads a program beside the running one. It returns false if
	// another one waits already.
	LoadConfig(program []byte) (ok bool, err error)
	// SwapConfigs starts the loaded program and returns false if there is none.
	SwapConfigs() (ok bool)
}

// An exception is the code of an error that a call declares.
type exception int32

// Codes of exceptions for registers and counters.
const (
	badName     exception = 1
	badIndex    exception = 2
	otherError  exception = 3
	noSession   exception = 1
	resultOK              = int32(0)
	resultError           = int32(1)
)

// A call implements a method. It takes the arguments and returns the value of
// result field 0 (nil for void), or the exception for field 1. An error as value
// is an error that the method does not declare.
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

// ownService is the name of the service with calls that BMv2 does not have.
const ownService = "p4lb"

// saturate limits a number to the signed 64 bits of the protocol.
func saturate(v uint64) int64 { return int64(min(v, math.MaxInt64)) }

// done returns the result of a call without return value: the exception if err
// is not nil.
func done(err error, refused exception) (any, exception) {
	if err != nil {
		return nil, refused
	}
	return nil, 0
}

// A part selects the cells of an array that a call accesses.
type part func(in record, size int) (from, to int)

func oneCell(in record, _ int) (from, to int) {
	from = int(in.int32At(3))
	return from, from + 1
}

func someCells(in record, _ int) (from, to int) { return int(in.int32At(3)), int(in.int32At(4)) }

func allCells(_ record, size int) (from, to int) { return 0, size }

// A cellCall is the part of a call that accesses existing cells.
type cellCall func(t Target, in record, name string, from, to int) (any, exception)

// ofCells turns f into a call that checks the name and the cells first.
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

// registerWrite writes the argument with the field id value.
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

// A setting applies the argument with the given id to the queues of a port and
// a priority; see SetQueueDepth.
type setting func(t Target, in record, id int16, port, priority int) (done bool)

// ofQueues turns set into a call. The first named arguments are the port and
// the priority. The call declares no exception; it returns an error code.
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

// sessionFields encodes the destination of a mirroring session; values of -1
// are omitted.
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

// session is the inverse of sessionFields.
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

// mappingAdd and mappingDelete return whether they succeeded, as a number.
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
