package p4rt

import (
	"fmt"
	"math"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// TestAppendCell compares the encoding of cells with protobuf's.
func TestAppendCell(t *testing.T) {
	for _, id := range []uint32{1, 127, 128, 0x16573049, math.MaxUint32} {
		for _, index := range []int{0, 1, 127, 128, 65535, math.MaxInt32} {
			for _, v := range []uint64{0, 1, 0xff, 0x100, 0x123456, math.MaxUint64} {
				want, err := proto.Marshal(&p4v1.ReadResponse{Entities: []*p4v1.Entity{{
					Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: &p4v1.RegisterEntry{
						RegisterId: id, Index: &p4v1.Index{Index: int64(index)},
						Data: &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: num.Shortest([]uint64{v}, 64)}},
					}},
				}}})
				if err != nil {
					t.Fatal(err)
				}
				got := appendCell(nil, id, index, v)
				if string(got) != string(want) {
					t.Errorf("cell %d of %#x is %#x: got %x, want %x", index, id, v, got, want)
				}
				if len(got) > cellSize {
					t.Errorf("cell %d of %#x takes %d bytes, more than %d", index, id, len(got), cellSize)
				}
			}
		}
	}
}

// TestReadInOrder: cells in the optimized encoding keep their position between
// other entities.
func TestReadInOrder(t *testing.T) {
	s := configured(t)
	s.must(s.write(insert(t, macEntry(t, "\x01"))))
	macs := entityOf(&p4v1.TableEntry{TableId: idOf(t, "AllIngress.macs")})
	cell := func(register string, index int64) *p4v1.Entity { return registerEntity(t, register, index, nil) }
	got, err := s.read(cell("AllIngress.sizes", 3), macs, cell("AllIngress.sizes", 4), cell("AllIngress.sizes", 0), cell("AllIngress.signs", 1), macs)
	s.must(err)
	var kinds []string
	for _, e := range got {
		kind := "entry"
		if r := e.GetRegisterEntry(); r != nil {
			kind = fmt.Sprintf("cell %d", r.GetIndex().GetIndex())
		}
		kinds = append(kinds, kind)
	}
	if want := "[cell 3 entry cell 4 cell 0 cell 1 entry]"; fmt.Sprint(kinds) != want {
		t.Errorf("got %v, want %s", kinds, want)
	}
}
