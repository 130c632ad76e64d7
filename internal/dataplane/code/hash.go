package code

import (
	"unsafe"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// This file computes the CRCs that programs use to select paths. It packs the
// fields into words of up to eight bytes, and looks up each byte of a word in a
// separate table ("slicing by eight").

// A piece is a range of bits of a vector word, at its place in a word of a
// hash's input.
type piece struct {
	off   int
	right int // the shift to the right
	width int
	left  int // then the shift to the left
}

// maxHashed is the largest input in bytes that machine code hashes.
const maxHashed = 64

// hashed splits the inputs of a calculation into words of up to eight bytes. It
// returns nil unless all inputs are metadata fields that fill whole bytes.
func hashed(ins []hash.Input) (words [][]piece, bytes int) {
	var all []piece
	bits := 0
	for _, in := range ins {
		if in.Parts == nil || !in.Always {
			return nil, 0
		}
		for _, q := range in.Parts {
			all = append(all, piece{off: q.Off, width: q.Width})
			bits += q.Width
		}
	}
	if bits == 0 || bits%8 != 0 || bits > 8*maxHashed {
		return nil, 0
	}
	var word []piece
	room := 64
	for len(all) > 0 {
		p := all[0]
		n := min(p.width, room)
		room -= n
		word = append(word, piece{off: p.off, right: p.width - n, width: n, left: room})
		all[0].width -= n
		if all[0].width == 0 {
			all = all[1:]
		}
		if room == 0 {
			words, word, room = append(words, word), nil, 64
		}
	}
	if word != nil {
		words = append(words, word)
	}
	return words, bits / 8
}

// HashInto writes base + H % max for a CRC in hash.SlicedCRCs. If the control plane
// may replace the function, the code checks for a replacement at run time, and
// executes the code that changed writes if there is one.
func (k *Writer) HashInto(c *hash.Calculation, a []*bmv2.Expr, changed func()) bool {
	dst, err := k.Place(a[0])
	if err != nil || dst.Base != nil || dst.Field.Signed || dst.Field.VarLen || dst.Field.Width > 64 {
		return false
	}
	base, size := k.Tree(a[1]), k.Tree(a[3])
	if c == nil || c.Payload || c.Extends() || base == nil || size == nil || base.depth+1 > len(Pool) || size.depth+1 > len(Pool) {
		return false
	}
	crc := hash.SlicedCRCs()[c.AlgoID]
	words, bytes := hashed(c.Inputs)
	if crc == nil || words == nil {
		return false
	}
	v, err := k.Number(a[3])
	if err != nil {
		return false
	}
	if c.Hash != nil {
		asSaid, end := k.NewLabel(), k.NewLabel()
		// Hostile input: none. c.Set is only compared with nil.
		k.ref(asm.CX, unsafe.Pointer(&c.Set), int(unsafe.Sizeof(c.Set)))
		k.Load(asm.AX, asm.At(asm.CX, 0))
		k.Test(asm.AX, asm.AX)
		k.JumpIf(asm.Equal, asSaid)
		changed()
		k.Jump(end)
		k.Bind(asSaid)
		defer k.Bind(end)
	}
	k.crc(crc, words, bytes)
	r := Pool[0]
	if m, ok := v.RemainderMask(); ok {
		k.Mask(r, m)
	} else {
		// The remainder of a division by 0 is 0.
		zero, end := k.NewLabel(), k.NewLabel()
		k.Eval(size, 1)
		k.Test(Pool[1], Pool[1])
		k.JumpIf(asm.Equal, zero)
		k.Move(asm.AX, Pool[0])
		k.Set(asm.DX, 0)
		k.Div(Pool[1])
		k.Move(Pool[0], asm.DX)
		k.Jump(end)
		k.Bind(zero)
		k.Set(Pool[0], 0)
		k.Bind(end)
	}
	if base.op != treeConst || base.bits != 0 {
		k.Eval(base, 1)
		k.Do(asm.Add, r, Pool[1])
	}
	k.Mask(r, num.Mask64(dst.Field.Width))
	k.Store(Word(dst.Field.Off), r)
	return true
}

// crc computes a CRC into the first register of the pool.
func (k *Writer) crc(c *hash.Sliced, words [][]piece, bytes int) {
	state, data, rest := Pool[0], Pool[1], Pool[2]
	// Hostile input: a packet controls the bytes that select the rows of the tables.
	// A byte is below the 256 rows of each.
	k.ref(asm.CX, unsafe.Pointer(&c.Table), int(unsafe.Sizeof(c.Table)))
	for i, w := range words {
		n := min(8, bytes-8*i)
		// Combine the pieces of the word.
		for i, p := range w {
			r := rest
			if i == 0 {
				r = data
			}
			k.Load(r, Word(p.off))
			k.ShiftConst(asm.Shr, r, byte(p.right))
			k.ShiftConst(asm.Shl, r, byte(64-p.width)) // clear the higher bits
			k.ShiftConst(asm.Shr, r, byte(64-p.width-p.left))
			if i > 0 {
				k.Do(asm.Or, data, rest)
			}
		}
		k.Swap(data, 8)
		first := i == 0 && c.Init == 0
		switch {
		case first:
		case i == 0:
			k.Set(state, uint64(c.Init))
			fallthrough
		default:
			k.Do(asm.Xor, data, state)
		}
		k.slices(state, data, n, first)
	}
	if c.Xor != 0 {
		k.Set(asm.AX, uint64(c.Xor))
		k.Do(asm.Xor, state, asm.AX)
	}
}

// slices processes n bytes of data, already combined with the state, through the
// tables. The bits of the state above n bytes remain. none is true if there is no
// state yet.
func (k *Writer) slices(state, data asm.Reg, n int, none bool) {
	rest := !none && n < 4
	if rest {
		k.ShiftConst(asm.Shr, state, byte(8*n))
	}
	for j := range n {
		k.Low8(asm.AX, data)
		if j < n-1 {
			k.ShiftConst(asm.Shr, data, 8)
		}
		m := asm.Element(asm.CX, asm.AX, 4)
		m.Disp = int32((n - 1 - j) * int(unsafe.Sizeof(hash.Sliced{}.Table[0])))
		if j == 0 && !rest {
			k.LoadBytes(state, m, 4)
			continue
		}
		k.LoadBytes(asm.DX, m, 4)
		k.Do(asm.Xor, state, asm.DX)
	}
}
