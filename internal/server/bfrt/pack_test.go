package server

import (
	"fmt"
	"testing"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// TestPack: the metadata of a port begins with the first field in the highest bits, and
// fills the last byte with zeros.
func TestPack(t *testing.T) {
	for _, c := range []struct {
		widths []int
		values [][]byte
		want   string
	}{
		{[]int{3, 9}, [][]byte{{5}, {1, 0x23}}, "b230"}, // 101 100100011 0000
		{[]int{8, 16}, [][]byte{{0xab}, {0, 1}}, "ab0001"},
		{[]int{1}, [][]byte{{1}}, "80"},
		{[]int{7}, [][]byte{{1}}, "02"},
		{[]int{9}, [][]byte{{1, 0xff}}, "ff80"},
		{[]int{4, 4}, [][]byte{nil, {0xf}}, "0f"},
		{nil, nil, ""},
	} {
		var order []*datum
		row := &record{fields: map[uint32]*wire.DataField{}}
		for i, w := range c.widths {
			order = append(order, &datum{id: uint32(i + 1), width: w})
			row.fields[uint32(i+1)] = &wire.DataField{Value: &wire.DataField_Stream{Stream: c.values[i]}}
		}
		if got := fmt.Sprintf("%x", pack(order, row)); got != c.want {
			t.Errorf("fields of %v bits: %s, want %s", c.widths, got, c.want)
		}
	}
}
