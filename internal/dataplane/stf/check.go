package stf

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// checkCounter compares a counter; without a condition it must be zero
// packets.
func (r *runner) checkCounter(c *cursor) error {
	names := lists.Map(r.sw.Config().CounterArrays, func(k *bmv2.CounterArray) string { return k.Name })
	name, i, err := r.cellName(c, "counter", names)
	if err != nil {
		return err
	}
	v, err := r.sw.Counters().Read(name, i)
	if err != nil {
		return err
	}
	kind, op, want := "packets", "==", "0"
	if len(c.list) > 0 {
		kind, op, want = strings.ToLower(c.next()), c.next(), c.next()
	}
	got := v.Packets
	if kind == "bytes" {
		got = v.Bytes
	} else if kind != "packets" {
		return fmt.Errorf("counters have packets and bytes, not %q", kind)
	}
	return errors.Join(compare(fmt.Sprintf("%s(%d)", name, i), new(big.Int).SetUint64(got), kind, op, want), c.done())
}

// checkRegister compares a cell, or half of a pair: lo is the first field.
func (r *runner) checkRegister(c *cursor) error {
	arrays := r.sw.Config().RegisterArrays
	names := lists.Map(arrays, func(a *bmv2.RegisterArray) string { return a.Name })
	name, i, err := r.cellName(c, "register", names)
	if err != nil {
		return err
	}
	got, err := r.sw.Registers().Read(name, i)
	if err != nil {
		return err
	}
	half := ""
	switch strings.ToLower(c.peek(0)) {
	case "lo", "hi":
		half = strings.ToLower(c.next())
	}
	op, want := c.next(), c.next()
	array := lists.First(arrays, func(a *bmv2.RegisterArray) bool { return a.Name == name })
	if width := uint(array.Bitwidth); half == "hi" && !array.Pair {
		return fmt.Errorf("%s has no second half: its cells are one number of %d bits", name, width)
	} else if half != "" && array.Pair {
		first := new(big.Int).Rsh(got, width/2)
		if half == "hi" {
			first.Sub(got, first.Lsh(first, width/2))
		}
		got = first
	}
	return errors.Join(compare(fmt.Sprintf("%s(%d)", name, i), got, half, op, want), c.done())
}

// cellName reads NAME(INDEX).
func (r *runner) cellName(c *cursor, what string, names []string) (name string, i int, err error) {
	if name, err = unique(what, c.next(), names); err != nil {
		return "", 0, err
	}
	if err := c.want("("); err != nil {
		return "", 0, err
	}
	if i, err = r.cellIndex(c.next()); err != nil {
		return "", 0, err
	}
	return name, i, c.want(")")
}

// cellIndex reads a number, or the name of an entry from add.
func (r *runner) cellIndex(s string) (int, error) {
	if h, ok := r.handles[strings.TrimPrefix(s, "$")]; ok {
		return int(h), nil
	}
	v, err := number(s)
	if err != nil {
		return 0, err
	}
	if !v.IsInt64() || v.Int64() > 1<<31 {
		return 0, fmt.Errorf("%s is too large", s)
	}
	return int(v.Int64()), nil
}

// compare returns an error unless the value of name satisfies a condition.
func compare(name string, got *big.Int, kind, op, want string) error {
	n, err := number(want)
	if err != nil {
		return err
	}
	ok, err := holds(got.Cmp(n), op)
	if err == nil && !ok {
		err = fmt.Errorf("%s has %s, expected %s %s", name, strings.TrimSpace(got.String()+" "+kind), op, want)
	}
	return err
}

// holds reports whether the result of a comparison satisfies an operator.
func holds(cmp int, op string) (bool, error) {
	switch op {
	case "==", "=":
		return cmp == 0, nil
	case "!=":
		return cmp != 0, nil
	case "<":
		return cmp < 0, nil
	case "<=":
		return cmp <= 0, nil
	case ">":
		return cmp > 0, nil
	case ">=":
		return cmp >= 0, nil
	}
	return false, fmt.Errorf("unknown comparison %q", op)
}

// ghost reads run QUEUE:LENGTH … and reports the lengths to the ghost thread of
// Tofino 2.
func (r *runner) ghost(c *cursor) error {
	if err := c.want("run"); err != nil {
		return err
	}
	for _, b := range c.bindings() {
		n, err := numbers32([]string{b.name, b.value})
		if err != nil {
			return err
		}
		if err := r.sw.RunGhost(int(n[0]), int(n[1]), r.now); err != nil {
			return err
		}
	}
	return c.done()
}

// tofino reports whether the program is for Tofino.
func (r *runner) tofino() bool { return r.sw.Config().Architecture() != "" }
