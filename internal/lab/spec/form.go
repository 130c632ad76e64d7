package spec

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// WriteForm writes the canonical form of data: one line for each value that is set,
// such as
//
//	cases[0].traffic[0].size=10000
//	schemes[1].set{d}="4"
//
// in an order that depends only on the names in files. Numbers are exact on every machine. Zero
// values have no line, so a new field changes nothing as long as it is zero. Keys of runs are
// digests of this form, and stores keep experiments in it.
func WriteForm(b *bytes.Buffer, path string, v any) { formOf(b, path, reflect.ValueOf(v)) }

func formOf(b *bytes.Buffer, path string, v reflect.Value) {
	line := func(format string, x any) { fmt.Fprintf(b, "%s="+format+"\n", path, x) }
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct {
			line("%s", "set")
			formOf(b, path, v.Elem())
		} else if !v.IsNil() {
			line("%v", v.Elem().Interface())
		}
		return
	case reflect.Slice:
		if v.Len() > 0 {
			line("%d items", v.Len())
		}
		for i := range v.Len() {
			formOf(b, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
		return
	case reflect.Map:
		m := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			m[k.String()] = v.MapIndex(k)
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(b, "%s{%s}=%q\n", path, k, m[k].String())
		}
		return
	case reflect.Struct:
		for i := range v.NumField() {
			if name, ok := formName(v.Type().Field(i)); ok {
				formOf(b, strings.TrimPrefix(path+name, "."), v.Field(i))
			}
		}
		return
	}
	if v.IsZero() {
		return
	}
	switch {
	case v.CanInt():
		line("%d", v.Int())
	case v.CanUint():
		line("%d", v.Uint())
	case v.CanFloat():
		line("%s", strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case v.Kind() == reflect.Bool:
		line("%t", v.Bool())
	case v.Kind() == reflect.String:
		line("%q", v.String())
	default:
		panic(fmt.Sprintf("no form of %v at %s", v.Type(), path))
	}
}

// formName returns the path element of a field: its name in files, or nothing for
// inlined fields. The second result is false for fields that no file sets.
func formName(f reflect.StructField) (name string, ok bool) {
	tag, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	switch {
	case !f.IsExported() || tag == "-":
		return "", false
	case option == "inline":
		return "", true
	case tag == "":
		tag = strings.ToLower(f.Name)
	}
	return "." + tag, true
}

// ReadForm sets v, a pointer to a struct, from the output of WriteForm for such a struct.
func ReadForm(text []byte, v any) error {
	f := &formReader{maxForm}
	for line := range strings.Lines(string(text)) {
		path, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		// Neither the name of a parameter nor a key in a file may contain an equals sign.
		if !ok {
			return fmt.Errorf("%q: want a path and a value", line)
		}
		if err := f.set(reflect.ValueOf(v).Elem(), path, value); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// A formReader sets values from the lines of a form. A short line can request many items, so room
// limits the total size of all items.
type formReader struct{ room int }

// maxForm limits the total size of all items.
const maxForm = 256 << 20

// set sets the value at a path.
func (f *formReader) set(v reflect.Value, path, value string) error {
	if path == "" {
		return f.leaf(v, value)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return f.set(v.Elem(), path, value)
	case reflect.Slice:
		index, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(index)
		if !ok || err != nil || i < 0 || i >= v.Len() {
			return fmt.Errorf("there is no item %q", index)
		}
		return f.set(v.Index(i), rest, value)
	case reflect.Map:
		key, rest, ok := strings.Cut(strings.TrimPrefix(path, "{"), "}")
		text, err := strconv.Unquote(value)
		if !ok || rest != "" || err != nil {
			return fmt.Errorf("%q is no entry", value)
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		v.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(text))
		return nil
	case reflect.Struct:
		name := strings.TrimPrefix(path, ".")
		rest := ""
		if i := strings.IndexAny(name, ".[{"); i >= 0 {
			name, rest = name[:i], name[i:]
		}
		if field := fieldNamed(v, name); field.IsValid() {
			return f.set(field, rest, value)
		}
	}
	return fmt.Errorf("this p4lb knows no such thing")
}

// fieldNamed returns the field with a name in files, including inlined fields.
func fieldNamed(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		switch n, ok := formName(v.Type().Field(i)); {
		case !ok:
		case n == "."+name:
			return v.Field(i)
		case n == "":
			if f := fieldNamed(v.Field(i), name); f.IsValid() {
				return f
			}
		}
	}
	return reflect.Value{}
}

func (f *formReader) leaf(v reflect.Value, value string) (err error) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if value == "set" {
			return nil
		}
		return f.leaf(v.Elem(), value)
	case reflect.Slice:
		n, err := strconv.Atoi(strings.TrimSuffix(value, " items"))
		if err != nil || n < 0 {
			return fmt.Errorf("%q: want a number of items", value)
		}
		size := max(1, int(v.Type().Elem().Size()))
		if n > f.room/size {
			return fmt.Errorf("%q: all items would take more than %d MiB", value, maxForm>>20)
		}
		f.room -= n * size
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		return nil
	case reflect.String:
		value, err = strconv.Unquote(value)
		v.SetString(value)
		return err
	case reflect.Bool:
		b, err := strconv.ParseBool(value)
		v.SetBool(b)
		return err
	}
	switch {
	case v.CanInt():
		n, err := strconv.ParseInt(value, 10, 64)
		v.SetInt(n)
		return err
	case v.CanUint():
		n, err := strconv.ParseUint(value, 10, 64)
		v.SetUint(n)
		return err
	case v.CanFloat():
		x, err := strconv.ParseFloat(value, 64)
		v.SetFloat(x)
		return err
	}
	return fmt.Errorf("%v has no value", v.Type())
}

// spellOut sets values that are zero, and so are missing in a form, if a missing
// value in a file would mean the default.
func (x *Experiment) spellOut() {
	x.Setting.spellOut()
	for i := range x.Cases {
		x.Cases[i].Setting.spellOut()
	}
	if x.Full != nil {
		x.Full.Setting.spellOut()
	}
}

func (s *Setting) spellOut() {
	if s.marks() && s.Switches.KMax == 0 {
		s.Switches.ECN = cmp.Or(s.Switches.ECN, never)
	}
	for i := range s.Traffic {
		t := &s.Traffic[i]
		if t.hasLoad() {
			t.LoadOf = cmp.Or(t.LoadOf, OfHosts)
		}
		if t.draws() {
			t.Cut = cmp.Or(t.Cut, Uncut)
		}
	}
}

// FromForm reads an experiment that was complete when its form was written.
func FromForm(form []byte) (*Experiment, error) {
	x := new(Experiment)
	if err := ReadForm(form, x); err != nil {
		return nil, err
	}
	// All cases have copies of these values, including ceilings.
	x.Ceiling, x.Links, x.Fail, x.Faults, x.Like, x.Switches = nil, nil, nil, nil, "", SwitchSpec{}
	x.Warmup.given = true
	x.spellOut()
	for i := range x.Cases {
		x.Cases[i].Warmup.given = true
	}
	if x.Full != nil {
		x.Full.Warmup.given = true
	}
	return x, nil
}
