package stf

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/program"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// unique returns the name that equals short, or else the only name that ends with
// short.
func unique(what, short string, names []string) (string, error) {
	var found []string
	for _, n := range names {
		if n == short {
			return n, nil
		}
		if strings.HasSuffix(n, short) {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no %s %q", what, short)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s %q can be %s", what, short, strings.Join(found, " or "))
}

// table finds a table by its name or a suffix of it.
func (r *runner) table(short string) (*bmv2.Table, error) {
	byName := map[string]*bmv2.Table{}
	var names []string
	for _, p := range r.sw.Config().Pipelines {
		for _, t := range p.Tables {
			byName[t.Name] = t
			names = append(names, t.Name)
		}
	}
	name, err := unique("table", short, names)
	return byName[name], err
}

// call reads a call of one of a table's actions.
func (r *runner) call(t *bmv2.Table, c *cursor) (program.ActionCall, error) {
	inv, err := c.invocation()
	if err != nil {
		return program.ActionCall{}, err
	}
	var names []string
	for _, n := range t.Actions {
		names = lists.Add(names, n)
	}
	name, err := unique("action of "+t.Name, inv.action, names)
	if err != nil {
		return program.ActionCall{}, err
	}
	call := program.ActionCall{Name: name}
	values := map[string]string{}
	for _, b := range inv.args {
		values[b.name] = b.value
	}
	for _, p := range actionOf(r.sw.Config(), name).RuntimeData {
		s, ok := values[p.Name]
		if !ok {
			return call, fmt.Errorf("action %s: no value for %s", name, p.Name)
		}
		delete(values, p.Name)
		v, err := number(s)
		if err != nil {
			return call, err
		}
		call.Params = append(call.Params, v.Bytes())
	}
	for name := range values {
		return call, fmt.Errorf("action %s has no parameter %s", call.Name, name)
	}
	return call, nil
}

func actionOf(c *bmv2.Config, name string) *bmv2.Action {
	return cmp.Or(lists.First(c.Actions, func(a *bmv2.Action) bool { return a.Name == name }), &bmv2.Action{})
}

var stackIndex = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.*)\$([0-9]+)(.*)$`)
})

// key finds a field of a table's key. "h$1.f" means h[1].f, and "h.valid" or
// "h" the validity of a header. The first components of a name may be missing.
func key(fields []dataplane.KeyField, name string) (int, error) {
	name = stackIndex().ReplaceAllString(name, "$1[$2]$3")
	base, isValid := strings.CutSuffix(name, "valid")
	forms := []func(n string) bool{
		func(n string) bool { return n == name || n == name+"$" || n == name+".$valid$" },
		func(n string) bool { return isValid && n == base+"$valid$" },
		func(n string) bool { return strings.HasSuffix(n, "."+name) || strings.HasSuffix(n, "."+name+"$") },
		func(n string) bool { return isValid && strings.HasSuffix(n, "."+base+"$valid$") },
	}
	for _, is := range forms {
		if i := slices.IndexFunc(fields, func(f dataplane.KeyField) bool { return is(f.Name) }); i >= 0 {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no key field %q", name)
}

// A keySlice is a key field that is a slice of a field.
type keySlice struct{ field, high, low int }

var sliceName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.*)\[([0-9]+):([0-9]+)\]$`)
})

// slicesOf finds the key fields that are slices of a field. The first
// components of the name may be missing.
func slicesOf(fields []dataplane.KeyField, name string) []keySlice {
	var found []keySlice
	for i, f := range fields {
		m := sliceName().FindStringSubmatch(f.Name)
		if m == nil || m[1] != name && !strings.HasSuffix(m[1], "."+name) {
			continue
		}
		high, err1 := strconv.Atoi(m[2])
		low, err2 := strconv.Atoi(m[3])
		if err1 == nil && err2 == nil && low <= high {
			found = append(found, keySlice{i, high, low})
		}
	}
	return found
}
