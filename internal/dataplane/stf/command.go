package stf

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/cell"
	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// command runs a statement other than packet, expect, no_packet and wait.
func (r *runner) command(st stmt) error {
	c := &cursor{list: st.args}
	switch st.op {
	case "add":
		return r.add(c)
	case "setdefault":
		return r.setDefault(c)
	case "remove":
		return r.removeAll(c)
	case "check_counter":
		return r.checkCounter(c)
	case "check_register":
		return r.checkRegister(c)
	case "ghost":
		return r.ghost(c)
	case "mirroring_add", "mirroring_add_mc", "mirroring_delete", "mirroring_get",
		"mc_mgrp_create", "mc_node_create", "mc_node_update", "mc_node_associate":
		return r.replication(st)
	case "counter_read", "counter_write", "register_read", "register_write", "register_reset":
		return r.array(st)
	case "meter_get_rates", "meter_set_rates", "meter_array_set_rates":
		return r.meter(st)
	}
	if isProfileCommand(st.op) {
		return r.profileCommand(st.op, c)
	}
	return errors.New("unknown statement")
}

// topPriority converts priorities of STF, in which the largest wins, to priorities
// in which the smallest wins.
const topPriority = 10000

func (r *runner) add(c *cursor) error {
	t, err := r.table(c.next())
	if err != nil {
		return err
	}
	fields, ordered, err := r.sw.Tables().Key(t.Name)
	if err != nil {
		return err
	}
	e := program.Entry{Match: make([]program.Match, len(fields))}
	for i, f := range fields {
		e.Match[i] = anything(f)
	}
	if p, err := strconv.Atoi(c.peek(0)); err == nil && c.peek(1) != ":" {
		c.next()
		e.Priority = topPriority - p
	} else if ordered {
		e.Priority = topPriority
	}
	for _, b := range c.bindings() {
		if err := r.bind(e.Match, fields, b); err != nil {
			return err
		}
	}
	call, err := r.call(t, c)
	if err != nil {
		return err
	}
	e.Target = program.Target{Action: call}
	h, err := r.sw.Tables().Add(t.Name, e)
	if errors.Is(err, program.ErrDuplicate) && r.tofino() {
		h, err = r.replace(t.Name, e)
	}
	if err == nil && c.peek(0) == "=" {
		c.next()
		r.handles[strings.TrimPrefix(c.next(), "$")] = h
	}
	return errors.Join(err, c.done())
}

// bind reads the value of a key field into match. On Tofino a value for a field
// whose slices are in the key is split among them, and excess bits are cut.
func (r *runner) bind(match []program.Match, fields []dataplane.KeyField, b binding) error {
	i, err := key(fields, b.name)
	if err == nil {
		f := fields[i]
		if match[i], err = matchValue(f, b.value); err == nil && r.tofino() && f.Kind == program.MatchExact {
			match[i].Value = bitsOf(match[i].Value, f.Width-1, 0)
		}
		return err
	}
	cuts := slicesOf(fields, b.name)
	if !r.tofino() || len(cuts) == 0 {
		return err
	}
	v, err := number(b.value)
	for _, c := range cuts {
		if kind := fields[c.field].Kind; err == nil && kind != program.MatchExact {
			err = fmt.Errorf("slice %s is matched %v: give it a value of its own", fields[c.field].Name, kind)
		}
		if err != nil {
			return err
		}
		match[c.field] = program.Match{Value: bitsOf(v.Bytes(), c.high, c.low)}
	}
	return nil
}

// replace changes the action of the entry with the key of e.
func (r *runner) replace(table string, e program.Entry) (program.Handle, error) {
	h, err := r.sw.Tables().Find(table, e.Match, e.Priority)
	if err == nil {
		err = r.sw.Tables().Modify(table, h, e.Target)
	}
	return h, err
}

func (r *runner) setDefault(c *cursor) error {
	t, err := r.table(c.next())
	if err != nil {
		return err
	}
	call, err := r.call(t, c)
	if err != nil {
		return err
	}
	if err := c.done(); err != nil {
		return err
	}
	return r.sw.Tables().SetDefault(t.Name, program.Target{Action: call})
}

func (r *runner) removeAll(c *cursor) error {
	if err := c.want("all"); err != nil {
		return err
	}
	for _, p := range r.sw.Config().Pipelines {
		for _, t := range p.Tables {
			if err := r.sw.Tables().Clear(t.Name, false); err != nil && !errors.Is(err, program.ErrImmutable) {
				return err
			}
		}
	}
	return c.done()
}

func wantArgs(st stmt, low, high int) error {
	if len(st.args) < low || len(st.args) > high {
		return fmt.Errorf("%d arguments, expected %d", len(st.args), low)
	}
	return nil
}

// anyNumber means no limit on the number of arguments.
const anyNumber = 1 << 20

func (r *runner) replication(st stmt) error {
	counts := map[string][2]int{
		"mirroring_add": {2, 2}, "mirroring_add_mc": {2, 2}, "mirroring_delete": {1, 1}, "mirroring_get": {1, 1},
		"mc_mgrp_create": {1, 1}, "mc_node_create": {1, anyNumber}, "mc_node_update": {1, anyNumber}, "mc_node_associate": {2, 2},
	}
	if err := wantArgs(st, counts[st.op][0], counts[st.op][1]); err != nil {
		return err
	}
	n, err := numbers32(st.args)
	if err != nil {
		return err
	}
	switch st.op {
	case "mirroring_add":
		return r.sw.Mirrors().Set(n[0], dataplane.MirrorSession{Port: n[1], HasPort: true})
	case "mirroring_add_mc":
		return r.sw.Mirrors().Set(n[0], dataplane.MirrorSession{Group: n[1]})
	case "mirroring_delete":
		return r.sw.Mirrors().Delete(n[0])
	case "mirroring_get":
		return nil // it only prints the session
	case "mc_mgrp_create":
		return r.sw.Replication().CreateGroup(n[0])
	case "mc_node_create":
		r.sw.Replication().CreateNode(n[0], n[1:], nil)
		return nil
	case "mc_node_update":
		return r.sw.Replication().UpdateNode(program.Handle(n[0]), n[1:], nil)
	}
	return r.sw.Replication().JoinGroup(n[0], program.Handle(n[1]))
}

func (r *runner) array(st stmt) error {
	counts := map[string]int{"counter_read": 2, "counter_write": 4, "register_read": 2, "register_write": 3, "register_reset": 1}
	if err := wantArgs(st, counts[st.op], counts[st.op]); err != nil {
		return err
	}
	name := st.args[0]
	if st.op == "register_reset" {
		return r.sw.Registers().Reset(name)
	}
	i, err := r.cellIndex(st.args[1])
	if err != nil {
		return err
	}
	var values []*big.Int
	for _, s := range st.args[2:] {
		v, err := number(s)
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	switch st.op {
	case "counter_read":
		_, err = r.sw.Counters().Read(name, i)
	case "counter_write":
		err = r.sw.Counters().Write(name, i, cell.Count{Packets: values[0].Uint64(), Bytes: values[1].Uint64()})
	case "register_read":
		_, err = r.sw.Registers().Read(name, i)
	default:
		err = r.sw.Registers().Write(name, i, values[0])
	}
	return err
}

func (r *runner) meter(st stmt) error {
	if err := wantArgs(st, 1, anyNumber); err != nil {
		return err
	}
	c := &cursor{list: st.args[1:]}
	name := st.args[0]
	if st.op == "meter_array_set_rates" {
		rates, err := meterRates(c)
		if err != nil {
			return err
		}
		return r.sw.Meters().SetAll(name, rates)
	}
	i, err := r.cellIndex(c.next())
	if err != nil {
		return err
	}
	if st.op == "meter_get_rates" {
		_, err := r.sw.Meters().Rates(name, i)
		return err
	}
	rates, err := meterRates(c)
	if err != nil {
		return err
	}
	return r.sw.Meters().Set(name, i, rates)
}

// meterRates reads RATE:BURST pairs, with rates per microsecond.
func meterRates(c *cursor) ([]cell.MeterRate, error) {
	var rates []cell.MeterRate
	for _, b := range c.bindings() {
		rate, err := strconv.ParseFloat(b.name, 64)
		if err != nil {
			return nil, err
		}
		burst, err := strconv.ParseUint(b.value, 10, 64)
		if err != nil {
			return nil, err
		}
		rates = append(rates, cell.MeterRate{PerMicrosecond: rate, Burst: burst})
	}
	return rates, c.done()
}
