package server

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// A hashRig sends equal packets to port 2. Their destination contains the results of
// the hashes mixed and quick.
type hashRig struct{ *rig }

const (
	hashSrc  = 0x112233445566
	hashKind = 0x0abc
)

func newHashRig(t *testing.T) hashRig {
	r := hashRig{newRig(t)}
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "send", "port", 2))
	r.set(ins, "In.mixer", r.key("In.mixer", hashKind), r.data("In.mixer", "mix"))
	return r
}

// now returns the hashes of a packet.
func (r hashRig) now() (mixed uint32, quick uint16) {
	r.t.Helper()
	r.send(1, frame(7, hashSrc, hashKind))
	b := r.leaves(2)
	return binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:])
}

// computed returns the hash that the control plane computes.
func (r hashRig) computed(name string) uint64 {
	r.t.Helper()
	d := r.get(everywhere, "In."+name+".compute", r.key("In."+name+".compute", hashSrc, hashKind))
	return uintOf(d.GetFields()[0].GetStream())
}

// A slice is a client's configuration of a part of a hash's input.
type slice struct{ field, start, length, order int }

// order makes an entry of the order of a hash's input.
func (r hashRig) order(name string, list ...slice) *wire.Update {
	t := r.table("In." + name + ".configure")
	d := &wire.TableData{}
	for i, f := range t.order {
		x := &wire.DataField_ContainerArray{}
		for _, s := range list {
			if s.field == i {
				x.Container = append(x.Container, &wire.DataField_ContainerArray_Container{Val: []*wire.DataField{
					f.part("order").number(uint64(s.order)), f.part("start_bit").number(uint64(s.start)), f.part("length").number(uint64(s.length)),
				}})
			}
		}
		if x.Container != nil {
			d.Fields = append(d.Fields, &wire.DataField{FieldId: f.id, Value: &wire.DataField_ContainerArrVal{ContainerArrVal: x}})
		}
	}
	return r.byDefault(mod, "In."+name+".configure", d)
}

func (r hashRig) byDefault(kind wire.Update_Type, table string, d *wire.TableData) *wire.Update {
	e := r.entry(table, nil, d)
	e.IsDefaultEntry = true
	return update(kind, e)
}

// TestHashes: the algorithm and the input of a hash change while packets move, and
// change back. The control plane computes the same values.
func TestHashes(t *testing.T) {
	r := newHashRig(t)
	check := func(what string, wantMixed uint32, wantQuick uint16) {
		t.Helper()
		mixed, quick := r.now()
		if mixed != wantMixed || quick != wantQuick {
			t.Errorf("%s: packets get %#x and %#x, want %#x and %#x", what, mixed, quick, wantMixed, wantQuick)
		}
		if m, q := r.computed("mixed"), r.computed("quick"); m != uint64(mixed) || q != uint64(quick) {
			t.Errorf("%s: the control plane computes %#x and %#x, packets get %#x and %#x", what, m, q, mixed, quick)
		}
	}
	src, kind := be(6, hashSrc), be(2, hashKind)
	of := func(parts ...[]byte) uint32 {
		var all []byte
		for _, p := range parts {
			all = append(all, p...)
		}
		return crc32.ChecksumIEEE(all)
	}
	asSaid := of(src, []byte{0xa5}, kind)
	_, plain := r.now()
	check("as the program says", asSaid, plain)

	r.must(r.write(everywhere, r.order("mixed", slice{0, 0, 48, 2}, slice{1, 0, 8, 3}, slice{2, 0, 16, 1})))
	check("in another order", of(kind, src, []byte{0xa5}), plain)
	r.must(r.write(everywhere, r.order("mixed", slice{0, 40, 8, 1}, slice{0, 0, 16, 2})))
	check("of slices", of(src[:1], src[4:]), plain)

	// Slices of the same order are combined, at the start of the input and behind other slices.
	for _, list := range [][]slice{{{0, 0, 8, 1}, {0, 8, 8, 1}, {2, 0, 8, 2}}, {{2, 0, 8, 1}, {0, 0, 8, 2}, {0, 8, 8, 2}}} {
		r.must(r.write(everywhere, r.order("mixed", list...)))
		if mixed, _ := r.now(); r.computed("mixed") != uint64(mixed) {
			t.Errorf("slices %v: the control plane computes %#x, packets get %#x", list, r.computed("mixed"), mixed)
		}
	}
	r.must(r.write(everywhere, r.order("mixed", slice{0, 40, 8, 1}, slice{0, 0, 16, 2})))

	// The second runs as machine code where the machine allows that.
	set := func(name, action string, list ...any) *wire.Update {
		return r.byDefault(mod, "In."+name+".algorithm", r.data("In."+name+".algorithm", action, list...))
	}
	r.must(r.write(everywhere, set("quick", "pre_defined", "algorithm_name", "crc_32")))
	check("another algorithm", of(src[:1], src[4:]), uint16(of(src, kind)))
	r.must(r.write(everywhere, set("quick", "user_defined", "polynomial", 0x04c11db7, "reverse", true, "init", 0xffffffff, "final_xor", 0xffffffff, "hash_bit_width", 32, "rotate", 4)))
	check("rotated", of(src[:1], src[4:]), uint16(of(src, kind))<<4|uint16(of(src, kind))>>12)

	r.must(r.write(everywhere, r.byDefault(del, "In.mixed.configure", nil), r.byDefault(del, "In.quick.algorithm", nil)))
	check("as the program says again", asSaid, plain)
}

// TestHashesTold: without a configuration, a read returns the program's own.
func TestHashesTold(t *testing.T) {
	r := newHashRig(t)
	text := func(d *wire.TableData) (list []string) {
		for _, f := range d.GetFields() {
			if s, ok := f.GetValue().(*wire.DataField_StrVal); ok {
				list = append(list, s.StrVal)
			}
		}
		return list
	}
	for name, want := range map[string]string{"mixed": "CRC_32", "quick": "CRC_16"} {
		if got := text(r.get(everywhere, "In."+name+".algorithm", nil)); len(got) != 1 || got[0] != want {
			t.Errorf("the algorithm of %s is %q, want %s", name, got, want)
		}
	}
	d := r.get(everywhere, "In.mixed.configure", nil)
	if len(d.GetFields()) != 3 {
		t.Fatalf("the input has %d fields, want 3", len(d.GetFields()))
	}
	for i, f := range d.GetFields() {
		c := f.GetContainerArrVal().GetContainer()
		if len(c) != 1 || uintOf(c[0].GetVal()[0].GetStream()) != uint64(i+1) {
			t.Errorf("field %d: %v", i, c)
		}
	}
	r.must(r.write(everywhere, r.order("mixed", slice{2, 4, 8, 1})))
	d = r.get(everywhere, "In.mixed.configure", nil)
	if c := d.GetFields()[0].GetContainerArrVal().GetContainer(); uintOf(c[0].GetVal()[0].GetStream()) != 0 {
		t.Errorf("a field that is left out has the order %v", c)
	}
}

// TestBadHashes: an impossible configuration is refused, and the hash stays
// unchanged, as after a rollback.
func TestBadHashes(t *testing.T) {
	r := newHashRig(t)
	r.must(r.write(everywhere, r.order("mixed", slice{0, 0, 48, 1})))
	mixed, quick := r.now()
	algorithm := func(name, action string, list ...any) *wire.Update {
		return r.byDefault(mod, "In."+name+".algorithm", r.data("In."+name+".algorithm", action, list...))
	}
	for what, c := range map[string]struct {
		u    *wire.Update
		code codes.Code
	}{
		"slices that overlap":          {r.order("mixed", slice{0, 3, 4, 3}, slice{0, 1, 9, 1}), codes.InvalidArgument},
		"a slice behind its field":     {r.order("mixed", slice{2, 16, 4, 1}), codes.InvalidArgument},
		"three of one order":           {r.order("mixed", slice{0, 0, 5, 2}, slice{0, 5, 5, 2}, slice{0, 10, 5, 2}), codes.InvalidArgument},
		"two of different lengths":     {r.order("mixed", slice{0, 0, 3, 2}, slice{0, 5, 5, 2}), codes.InvalidArgument},
		"an even polynomial":           {algorithm("quick", "user_defined", "polynomial", 0x8004, "hash_bit_width", 16), codes.InvalidArgument},
		"more bits than the CRC":       {algorithm("quick", "user_defined", "polynomial", 0x8005, "init", 0x10000, "hash_bit_width", 16), codes.InvalidArgument},
		"a CRC of 65 bits":             {algorithm("quick", "user_defined", "polynomial", 0x8005, "hash_bit_width", 65), codes.InvalidArgument},
		"an algorithm nobody knows":    {algorithm("quick", "pre_defined", "algorithm_name", "MD5"), codes.InvalidArgument},
		"parameters without algorithm": {algorithm("quick", "", "extend", true), codes.InvalidArgument},
		"bits that are just copied":    {algorithm("copied", "pre_defined", "algorithm_name", "CRC_8"), codes.Unimplemented},
	} {
		if list := details(t, r.write(everywhere, c.u)); codes.Code(list[0].GetCode()) != c.code {
			t.Errorf("%s: %v, want %v", what, list[0], c.code)
		}
		if m, q := r.now(); m != mixed || q != quick {
			t.Errorf("%s: packets get %#x and %#x, want %#x and %#x as before", what, m, q, mixed, quick)
		}
	}
	_, err := r.c.Write(t.Context(), &wire.WriteRequest{Target: everywhere, ClientId: r.client, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: []*wire.Update{
		algorithm("quick", "pre_defined", "algorithm_name", "CRC_32"), r.order("mixed", slice{1, 0, 8, 1}), algorithm("copied", "pre_defined", "algorithm_name", "CRC_8"),
	}})
	details(t, err)
	if m, q := r.now(); m != mixed || q != quick {
		t.Errorf("a batch that is rolled back: packets get %#x and %#x, want %#x and %#x", m, q, mixed, quick)
	}
}
