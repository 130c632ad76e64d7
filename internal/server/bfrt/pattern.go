package server

import (
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A pattern is the entity of a cell of a register as it goes over the wire. Those
// of all cells have the same bytes but for some numbers, which are as long in each:
// one is encoded by protobuf, and copied with other numbers in it. A register of
// 65,536 pairs in four pipes is half a million fields, and a message for each took
// nearly all the time of a read.
type pattern struct {
	text []byte // the entity as one of a response
	at   []int  // where each number begins
	size []int  // and its bytes
}

// newPattern makes the pattern of entities with numbers of so many bytes. entity
// makes one that holds the given numbers, without keeping them.
func newPattern(sizes []int, entity func(numbers [][]byte) *wire.Entity) *pattern {
	p := &pattern{size: sizes}
	numbers := lists.Map(sizes, func(n int) []byte { return make([]byte, n) })
	encode := func() []byte { return mustMarshal(&wire.ReadResponse{Entities: []*wire.Entity{entity(numbers)}}) }
	p.text = encode()
	for i, n := range sizes {
		numbers[i] = slices.Repeat([]byte{0xff}, n)
		for at, b := range encode() {
			if b != p.text[at] {
				p.at = append(p.at, at)
				break
			}
		}
		numbers[i] = make([]byte, n)
	}
	return p
}

// add appends an entity; number says its numbers.
func (p *pattern) add(to []byte, number func(i int) uint64) []byte {
	begin := len(to)
	to = append(to, p.text...)
	for i, at := range p.at {
		putUint(to[begin+at:begin+at+p.size[i]], number(i))
	}
	return to
}

// addEncoded puts entities that are encoded already into a response of their own.
func (a *answer) addEncoded(entities []byte) {
	m := &wire.ReadResponse{}
	m.ProtoReflect().SetUnknown(entities)
	a.pages = append(a.pages, m)
}
