package program

import (
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/code"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// compileParser writes the parser and the verification of checksums. It
// continues at State.Next.
func (k *compiler) compileParser(c *bmv2.Config) {
	k.parse = k.EntryHere()
	k.StoreByte(code.StateSumBad, 0)
	k.parseStates(k.prog.parser, c, "parser")
	k.verifySums()
	k.JumpTo(code.StateNext)
}

// parseStates writes the states of a parser. At their end, all of them continue
// with the code after the parser.
func (k *compiler) parseStates(ps *Parser, c *bmv2.Config, name string) {
	k.parsed = k.NewLabel()
	k.StoreConst(code.StateError, uint64(ps.Codes.None))
	if k.states == nil {
		k.states = map[*parseState]asm.Label{}
	}
	if ps.first != nil {
		src := parserNamed(c, name)
		g := &parseGraph{graph: graph[parseState]{compiler: k, labels: k.states, last: k.parsed}, codes: ps.Codes}
		states := map[string]*bmv2.ParseState{}
		for _, s := range src.ParseStates {
			states[s.Name] = s
		}
		g.node = func(st *parseState) *parseState { return g.state(st, states[st.name]) }
		if g.counts = circular(ps.first, (*parseState).successors); g.counts {
			k.StoreConst(code.StateSteps, 0)
		}
		g.write(ps.first)
	}
	k.Bind(k.parsed)
}

// successors returns the states that may follow st.
func (st *parseState) successors() []*parseState {
	return append(lists.Map(st.cases, func(c parseCase) *parseState { return c.next }), st.others)
}

// A parseGraph is a parser during compilation.
type parseGraph struct {
	graph[parseState]
	codes  errorCodes
	counts bool // the parser has loops, so the states of a packet are counted
}

// state writes a state and returns the state to write next.
func (g *parseGraph) state(st *parseState, src *bmv2.ParseState) *parseState {
	g.InPlace, g.Known, g.argWords, g.Params = true, nil, 0, nil
	defer func() { g.InPlace = false }()
	for i, op := range st.ops {
		switch {
		case src == nil: // the added state for no match on Tofino
			g.out(fromNoMatch, callout{parse: op}, g.parsed)
		case !g.op(src.ParserOps[i]):
			g.out(fromOp(src.ParserOps[i]), callout{parse: op}, g.parsed)
		}
	}
	if g.counts {
		enough := g.NewLabel()
		g.MemConst(asm.Cmp, code.StateSteps, maxParseStates)
		g.JumpIf(asm.NotEqual, enough)
		g.fail(g.codes.timeout)
		g.Bind(enough)
		g.MemConst(asm.Add, code.StateSteps, 1)
	}
	if len(st.cases) == 0 {
		return st.others
	}
	for i := range st.cases {
		g.label(st.cases[i].next)
	}
	if !g.key(st, src) {
		g.label(st.others)
		g.out(fromSelect, callout{next: st}, g.parsed)
		g.Jump(g.parsed) // never reached: Go continues at the next state
		return nil
	}
	for i := range st.cases {
		c := &st.cases[i]
		g.matches(c, st.key.bytes)
		g.JumpIf(asm.Equal, g.label(c.next))
	}
	return st.others
}

// fail ends the parser with an error.
func (g *parseGraph) fail(number int64) {
	g.StoreConst(code.StateError, uint64(number))
	g.Jump(g.parsed)
}

func (g *parseGraph) op(op *bmv2.ParserOp) bool {
	a := op.Parameters
	if g.leaves() {
		return false
	}
	switch op.Op {
	case "extract":
		if a[0].Type == bmv2.TypeRegular {
			h := g.Layout.HeaderNames[a[0].Name]
			if !code.Compiles(h.Type) || h.Metadata {
				return false
			}
			n, at := h.Type.Bits/8, 0
			g.need(n)
			for i := range h.Type.Chunks {
				c := &h.Type.Chunks[i]
				g.ReadChunk(c, h.Base, asm.At(asm.CX, at))
				at += c.Bytes
			}
			g.SetValid(h)
			g.MemConst(asm.Add, code.StateHead, uint64(n))
			return true
		}
	case "set":
		if a[1].Type == bmv2.TypeLookahead {
			return g.look(a[0], a[1])
		}
		return g.Assignment(a[0], g.Tree(a[1]))
	case "verify":
		holds, number := g.Condition(a[0]), g.Tree(a[1])
		if holds == nil || number == nil {
			return false
		}
		past := g.NewLabel()
		g.Branch(holds, 0, past, true)
		g.Eval(number, 0)
		g.Low32(code.Pool[0])
		g.Store(code.StateError, code.Pool[0])
		g.Jump(g.parsed)
		g.Bind(past)
		return true
	}
	return false
}

// need makes CX the address of the next n bytes to parse. On Tofino the frame
// check sequence may follow the packet.
//
// Hostile input: a packet controls its length. The parser fails with less than n
// bytes. The code may read 8 more bytes without using them; every buffer has this
// room after the packet.
func (g *parseGraph) need(n int) {
	again, enough := g.EntryHere(), g.NewLabel()
	g.Load(asm.AX, code.StateEnd)
	g.Load(asm.CX, code.StateHead)
	g.Do(asm.Sub, asm.AX, asm.CX)
	g.DoConst(asm.Cmp, asm.AX, uint64(n))
	g.JumpIf(asm.GreaterEqual, enough)
	if g.prog.Tofino() {
		g.out(fromFrameCheck, callout{test: func(p *vector.State) bool { return p.More(n) }}, again)
	}
	g.fail(g.codes.tooShort)
	g.Bind(enough)
	g.AddAddress(asm.CX, code.StateBuf, n+8)
}

// look stores the next bits of the packet in a field without advancing.
func (g *parseGraph) look(dst, src *bmv2.Expr) bool {
	pl, err := g.Place(dst)
	if err != nil || pl.Base != nil || pl.Field.Signed || pl.Field.VarLen || pl.Field.Width > 64 ||
		src.Offset != 0 || src.Width <= 0 || src.Width > 64 {
		return false
	}
	g.need(num.Bytes(src.Width))
	r := code.Pool[0]
	g.Load(r, asm.At(asm.CX, 0))
	g.Swap(r, 8)
	g.ShiftConst(asm.Shr, r, byte(64-src.Width))
	if pl.Field.Width < src.Width {
		g.Mask(r, num.Mask64(pl.Field.Width))
	}
	g.Store(code.Word(pl.Field.Off), r)
	return true
}

// key computes the key of a select into the first register of the pool.
func (g *parseGraph) key(st *parseState, src *bmv2.ParseState) bool {
	if st.key.bytes > 8 || g.leaves() {
		return false
	}
	for i := range st.cases {
		if st.cases[i].set != nil {
			return false
		}
	}
	var parts []*code.Tree
	for _, e := range src.TransitionKey {
		if e.Type != bmv2.TypeField {
			return false
		}
		t := g.Tree(e)
		if t == nil {
			return false
		}
		parts = append(parts, t)
	}
	for i, t := range parts {
		q := &st.key.parts[i]
		g.LoadField(code.Pool[min(i, 1)], t.Off, q.width)
		g.ShiftConst(asm.Shl, code.Pool[min(i, 1)], byte(q.shift))
		if i > 0 {
			g.Do(asm.Or, code.Pool[0], code.Pool[1])
		}
	}
	return true
}

// matches sets the flags to equal if the key in the first register of the pool
// matches a case.
func (g *parseGraph) matches(c *parseCase, bytes int) {
	key := code.Pool[0]
	if c.mask[0] != num.Mask64(8*bytes) {
		key = code.Pool[1]
		g.Set(key, c.mask[0])
		g.Do(asm.And, key, code.Pool[0])
	}
	if asm.Fits(c.value[0]) {
		g.DoConst(asm.Cmp, key, c.value[0])
		return
	}
	g.Set(asm.AX, c.value[0])
	g.Do(asm.Cmp, key, asm.AX)
}

// verifySums writes the verification of checksums.
func (k *compiler) verifySums() {
	for _, sum := range k.prog.verifies {
		skip := k.NewLabel()
		if !sum.header.Metadata {
			k.MemConst(asm.Cmp, code.Word(sum.header.Base), 0)
			k.JumpIf(asm.Equal, skip)
		}
		k.sumCondition(sum, skip)
		if sum.calc.Terms != nil && !k.leaves() {
			k.Checksum(sum.calc)
			k.DoMem(asm.Cmp, code.Pool[0], code.Word(sum.target.Off))
			k.JumpIf(asm.Equal, skip)
			k.StoreByte(code.StateSumBad, 1)
		} else {
			k.out(fromVerifyChecksum, callout{do: func(p *vector.State) {
				if sum.calc.Output(p) != p.W[sum.target.Off] {
					p.ChecksumError = true
				}
			}}, k.end)
		}
		k.Bind(skip)
	}
}

// sumCondition jumps to skip if the condition of a checksum does not hold.
func (k *compiler) sumCondition(sum *checksum, skip asm.Label) {
	if sum.cond == nil {
		return
	}
	if b := k.Condition(sum.src.IfCond); b != nil && !k.leaves() {
		k.Branch(b, 0, skip, false)
		return
	}
	yes := k.NewLabel()
	k.out(fromSumCondition, callout{test: sum.cond}, yes)
	k.Jump(skip)
	k.Bind(yes)
}

// compileDeparser writes the deparser, including the update of checksums.
func (k *compiler) compileDeparser(c *bmv2.Config) {
	k.deparse = k.EntryHere()
	k.updateSums()
	k.beforeHeaders(k.prog.Deparser, c, "deparser")
	k.emitHeaders(k.prog.Deparser)
	k.Jump(k.end)
}

// beforeHeaders writes the statements of a deparser before it emits headers.
func (k *compiler) beforeHeaders(d *deparser, c *bmv2.Config, name string) {
	if d.before.code == nil {
		return
	}
	src := deparserNamed(c, name)
	k.InPlace, k.Known, k.argWords = true, nil, 0
	k.primitives(d.before, src.Primitives)
	k.InPlace = false
}

// updateSums writes the update of checksums.
func (k *compiler) updateSums() {
	for _, sum := range k.prog.updates {
		skip := k.NewLabel()
		k.sumCondition(sum, skip)
		if f := sum.target; sum.calc.Terms != nil && !f.Signed && f.Width >= 16 && f.Width <= 64 && !k.leaves() {
			k.Checksum(sum.calc)
			k.Store(code.Word(f.Off), code.Pool[0])
		} else {
			k.out(fromUpdateChecksum, callout{do: func(p *vector.State) { sum.set(p, sum.calc.Output(p)) }}, k.end)
		}
		k.Bind(skip)
	}
}

// emitHeaders writes the valid headers. If one of them has no machine code, Go
// writes all.
func (k *compiler) emitHeaders(d *deparser) {
	slow, end := k.NewLabel(), k.NewLabel()
	if k.leaves() {
		k.Jump(slow)
	}
	for _, h := range d.order {
		switch {
		case code.Compiles(h.Type):
		case h.Metadata:
			k.Jump(slow)
		default:
			k.MemConst(asm.Cmp, code.Word(h.Base), 0)
			k.JumpIf(asm.NotEqual, slow)
		}
	}
	// Hostile input: a packet controls which headers are valid. The code makes room
	// for exactly those before it writes them, and every buffer has room for all
	// headers of the deparser before the packet.
	at, all := asm.CX, 0
	k.Load(at, code.StateHead)
	k.eachValid(d, func(h *vector.Header) {
		k.DoConst(asm.Sub, at, uint64(h.Type.Bits/8))
		all += h.Type.Bits / 8
	})
	k.Store(code.StateHead, at)
	k.AddAddress(at, code.StateBuf, all)
	k.eachValid(d, func(h *vector.Header) {
		n := 0
		for i := range h.Type.Chunks {
			c := &h.Type.Chunks[i]
			k.WriteChunk(c, h.Base, asm.At(at, n))
			n += c.Bytes
		}
		k.DoConst(asm.Add, at, uint64(n))
	})
	k.Jump(end)
	k.Bind(slow)
	k.out(fromDeparser, callout{do: func(p *vector.State) { d.write(k.prog, p) }}, k.end)
	k.Bind(end)
}

// eachValid calls do for each header, and skips its code if the header is
// invalid.
func (k *compiler) eachValid(d *deparser, do func(*vector.Header)) {
	for _, h := range d.order {
		if !code.Compiles(h.Type) {
			continue
		}
		skip := k.NewLabel()
		if !h.Metadata {
			k.MemConst(asm.Cmp, code.Word(h.Base), 0)
			k.JumpIf(asm.Equal, skip)
		}
		do(h)
		k.Bind(skip)
	}
}
