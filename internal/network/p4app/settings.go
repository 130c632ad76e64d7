package p4app

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
)

func (s *script) createTree(words []string) error {
	id, err := numberArg("multicast group", words[0], math.MaxUint16)
	if err != nil {
		return err
	}
	m := &p4v1.MulticastGroupEntry{MulticastGroupId: uint32(id)}
	s.trees[uint32(id)] = m
	s.putMulticast(s.line, m)
	return nil
}

func (s *script) createNode(words []string) error {
	instance, err := numberArg("instance", words[0], math.MaxUint16)
	if err != nil {
		return err
	}
	n := multicastNode{instance: uint32(instance)}
	for _, word := range words[1:] {
		if word == "|" {
			return errors.New("link aggregation groups are not supported: use simple_switch_CLI")
		}
		port, err := numberArg("port", word, 511)
		if err != nil {
			return err
		}
		n.ports = append(n.ports, uint32(port))
	}
	s.nodes = append(s.nodes, n)
	return nil
}

func (s *script) associate(words []string) error {
	id, err := numberArg("multicast group", words[0], math.MaxUint16)
	if err != nil || s.trees[uint32(id)] == nil {
		return fmt.Errorf("multicast group %s: no previous command creates it", words[0])
	}
	h, err := numberArg("node", words[1], int64(len(s.nodes))-1)
	if err != nil {
		return fmt.Errorf("node %s: no previous command creates it", words[1])
	}
	m := s.trees[uint32(id)]
	for _, port := range s.nodes[h].ports {
		m.Replicas = append(m.Replicas, replica(port, s.nodes[h].instance))
	}
	return nil
}

func (s *script) mirror(words []string) error {
	id, err := numberArg("mirroring session", words[0], math.MaxInt16)
	if err != nil {
		return err
	}
	port, err := numberArg("port", words[1], 511)
	s.set(s.line, func(sw Settings) error { return sw.SetSession(id, port, -1) })
	return err
}

func (s *script) mirrorGroup(words []string) error {
	id, err := numberArg("mirroring session", words[0], math.MaxInt16)
	if err != nil {
		return err
	}
	group, err := numberArg("multicast group", words[1], math.MaxUint16)
	s.set(s.line, func(sw Settings) error { return sw.SetSession(id, -1, group) })
	return err
}

func (s *script) register(name string) (*configv1.Register, error) {
	return find(s.info.GetRegisters(), "register", name)
}

func (s *script) registerWrite(words []string) error {
	r, err := s.register(words[0])
	if err != nil {
		return err
	}
	name := r.GetPreamble().GetName()
	index, err := numberArg("register "+name+": index", words[1], int64(r.GetSize())-1)
	if err != nil {
		return err
	}
	v, err := number(words[2], 64)
	if err != nil {
		return fmt.Errorf("register %s: %w", name, err)
	}
	s.set(s.line, func(sw Settings) error { return sw.WriteRegister(name, index, index+1, v.Uint64()) })
	return nil
}

func (s *script) registerReset(words []string) error {
	r, err := s.register(words[0])
	if err != nil {
		return err
	}
	s.set(s.line, func(sw Settings) error { return sw.WriteRegister(r.GetPreamble().GetName(), 0, int(r.GetSize()), 0) })
	return nil
}

func (s *script) counterWrite(words []string) error {
	c, err := find(s.info.GetCounters(), "counter", words[0])
	if err != nil {
		return err
	}
	name := c.GetPreamble().GetName()
	index, err := numberArg("counter "+name+": index", words[1], c.GetSize()-1)
	if err != nil {
		return err
	}
	packets, err1 := number(words[2], 63)
	bytes, err2 := number(words[3], 63)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("counter %s: %w", name, err)
	}
	s.set(s.line, func(sw Settings) error {
		return sw.WriteCounter(name, index, index+1, packets.Uint64(), bytes.Uint64())
	})
	return nil
}

func (s *script) meter(name string) (*configv1.Meter, error) {
	return find(s.info.GetMeters(), "meter", name)
}

// rates parses rates in units per microsecond, with bursts.
func rates(words []string) (list []dataplane.MeterRate, err error) {
	for _, w := range words {
		rate, burst, ok := strings.Cut(w, ":")
		r, err1 := strconv.ParseFloat(rate, 64)
		b, err2 := strconv.ParseUint(burst, 10, 31)
		if !ok || err1 != nil || err2 != nil || !(r >= 0) || math.IsInf(r, 0) {
			return nil, fmt.Errorf("%s: want RATE:BURST, as in 0.5:100", w)
		}
		list = append(list, dataplane.MeterRate{PerMicrosecond: r, Burst: b})
	}
	return list, nil
}

func (s *script) meterAll(words []string) error {
	var m described
	m, err := find(s.info.GetDirectMeters(), "meter", words[0])
	if err != nil {
		m, err = s.meter(words[0])
	}
	if err != nil {
		return err
	}
	list, err := rates(words[1:])
	s.set(s.line, func(sw Settings) error { return sw.SetMeter(m.GetPreamble().GetName(), -1, list) })
	return err
}

func (s *script) meterOne(words []string) error {
	m, err := s.meter(words[0])
	if err != nil {
		return err
	}
	name := m.GetPreamble().GetName()
	index, err := numberArg("meter "+name+": index", words[1], m.GetSize()-1)
	if err != nil {
		return err
	}
	list, err := rates(words[2:])
	s.set(s.line, func(sw Settings) error { return sw.SetMeter(name, index, list) })
	return err
}

// queue parses a port and a priority; -1 stands for all.
func queue(words []string) (port, priority int, err error) {
	port, priority = -1, -1
	if len(words) > 0 {
		if port, err = numberArg("port", words[0], 511); err != nil {
			return 0, 0, err
		}
	}
	if len(words) > 1 {
		priority, err = numberArg("priority", words[1], 7)
	}
	return port, priority, err
}

func (s *script) queueRate(words []string) error {
	n, err := numberArg("rate", words[0], math.MaxInt64)
	if err != nil {
		return err
	}
	port, priority, err := queue(words[1:])
	s.set(s.line, func(sw Settings) error { return sw.SetQueueRate(port, priority, uint64(n)) })
	return err
}

func (s *script) queueDepth(words []string) error {
	n, err := numberArg("depth", words[0], math.MaxInt32)
	if err != nil {
		return err
	}
	port, priority, err := queue(words[1:])
	s.set(s.line, func(sw Settings) error { return sw.SetQueueDepth(port, priority, n) })
	return err
}

func (s *script) crc(words []string, width int) error {
	var n [3]uint64
	for i := range n {
		v, err := number(words[1+i], width)
		if err != nil {
			return fmt.Errorf("calculation %s: %w", words[0], err)
		}
		n[i] = v.Uint64()
	}
	var reflect [2]bool
	for i := range reflect {
		v, err := strconv.ParseBool(strings.ToLower(words[4+i]))
		if err != nil {
			return fmt.Errorf("calculation %s: %s: want true or false", words[0], words[4+i])
		}
		reflect[i] = v
	}
	s.set(s.line, func(sw Settings) error {
		return sw.SetCRC(words[0], hash.CRC{Width: width, Poly: n[0], Init: n[1], XorOut: n[2], ReflectIn: reflect[0], ReflectOut: reflect[1]})
	})
	return nil
}

func (s *script) valueAdd(words []string) error {
	v, err := find(s.info.GetValueSets(), "value set", words[0])
	if err != nil {
		return err
	}
	value, err := parseNumber(words[1])
	if err != nil {
		return err
	}
	s.set(s.line, func(sw Settings) error { return sw.AddValue(v.GetPreamble().GetName(), bytesOf(value)) })
	return nil
}

type multicastNode struct {
	instance uint32
	ports    []uint32
}
