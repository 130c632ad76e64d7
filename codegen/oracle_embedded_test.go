package codegen_test

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// embedded is the embedded switch as a subject.
type embedded struct {
	engine *dataplane.Engine
	now    time.Duration
}

func newEmbedded(t *testing.T, config *bmv2.Config, queues int) *embedded {
	t.Helper()
	sw, err := dataplane.New(config, dataplane.Options{Priorities: queues})
	if err != nil {
		t.Fatal(err)
	}
	return &embedded{engine: dataplane.NewEngine(sw), now: time.Second}
}

func (e *embedded) commands(lines []string) error {
	for _, line := range lines {
		if err := e.command(strings.Fields(line)); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

// command executes a command of simple_switch_CLI.
func (e *embedded) command(f []string) error {
	sw := e.engine.Switch()
	switch f[0] {
	case "table_add": // TABLE ACTION KEY... => ARGUMENT... [PRIORITY]
		arrow := slices.Index(f, "=>")
		fields, _, err := sw.Tables().Key(f[1])
		if err != nil {
			return err
		}
		entry := dataplane.Entry{Target: dataplane.Target{Action: e.call(f[2], f[arrow+1:])}}
		for i, k := range f[3:arrow] {
			k, mask, ternary := strings.Cut(k, "&&&")
			value, length, _ := strings.Cut(k, "/")
			m := dataplane.Match{Value: inBytes(value, fields[i].Width)}
			m.PrefixLen, _ = strconv.Atoi(length)
			if ternary {
				m.Mask, entry.Priority = inBytes(mask, fields[i].Width), int(inNumbers(f[len(f)-1:])[0])
			}
			entry.Match = append(entry.Match, m)
		}
		_, err = sw.Tables().Add(f[1], entry)
		return err
	case "table_set_default": // TABLE ACTION ARGUMENT...
		return sw.Tables().SetDefault(f[1], dataplane.Target{Action: e.call(f[2], f[3:])})
	case "mirroring_add": // SESSION PORT
		n := inNumbers(f[1:])
		return sw.Mirrors().Set(n[0], dataplane.MirrorSession{Port: n[1], HasPort: true})
	case "mc_mgrp_create": // GROUP
		return sw.Replication().CreateGroup(inNumbers(f[1:])[0])
	case "mc_node_create": // INSTANCE PORT...
		n := inNumbers(f[1:])
		sw.Replication().CreateNode(n[0], n[1:], nil)
		return nil
	case "mc_node_associate": // GROUP NODE
		n := inNumbers(f[1:])
		return sw.Replication().JoinGroup(n[0], dataplane.Handle(n[1]))
	}
	return fmt.Errorf("unknown command")
}

func (e *embedded) call(action string, args []string) dataplane.ActionCall {
	c := dataplane.ActionCall{Name: action}
	for _, a := range e.engine.Switch().Config().Actions {
		if a.Name != action {
			continue
		}
		for i, p := range a.RuntimeData {
			c.Params = append(c.Params, inBytes(args[i], p.Bitwidth))
		}
		break
	}
	return c
}

func inNumbers(list []string) []uint32 {
	var numbers []uint32
	for _, s := range list {
		n, _ := strconv.ParseUint(s, 0, 32)
		numbers = append(numbers, uint32(n))
	}
	return numbers
}

func inBytes(s string, width int) []byte {
	v, ok := new(big.Int).SetString(s, 0)
	if !ok {
		v = new(big.Int)
	}
	return v.FillBytes(make([]byte, 16))[16-(width+7)/8:]
}

func (e *embedded) set(register string, index int, value uint64) error {
	return e.engine.Switch().Registers().Write(register, index, new(big.Int).SetUint64(value))
}

func (e *embedded) send(port uint32, data []byte, _ int) ([]leaving, error) {
	e.now += time.Second
	var list []leaving
	for _, o := range e.engine.Process(port, data, e.now) {
		list = append(list, leaving{o.Port, string(o.Data)})
	}
	sortLeaving(list)
	return list, nil
}

// sortLeaving orders the packets that leave after one input packet, because the ports
// of simple_switch are not synchronised.
func sortLeaving(list []leaving) {
	slices.SortFunc(list, func(a, b leaving) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.data, b.data))
	})
}

func (e *embedded) cells(register string) ([]uint64, error) {
	return e.engine.Switch().Registers().Cells(register, nil)
}
