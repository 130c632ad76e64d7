package server

import (
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A pattern is the encoded entity of a register cell. The entities of all cells
// differ only in numbers of constant length. So protobuf encodes one, and the others
// are copies with other numbers. A register of 65,536 pairs in four pipes has half a
// million fields, and a message for each took nearly all the time of a read.
type pattern struct {
	text []byte // the entity as one of a response
	at   []int  // the offset of each number
	size []int  // the size of each number
}

// newPattern returns the pattern of entities with numbers of the given sizes. entity
// makes one from numbers and must not keep them.
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

// add appends an entity with the numbers that number returns.
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
