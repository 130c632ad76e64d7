package dataplane

import (
	"slices"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/asm"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// compileParser writes the parser and the verification of checksums. It goes on
// at Packet.next.
func (k *compiler) compileParser(c *bmv2.Config) {
	k.parse = k.Here()
	k.StoreByte(packetSumBad, 0)
	k.parseStates(k.sw.parser, c, "parser")
	k.verifySums(c)
	k.JumpTo(packetNext)
}

// parseStates writes the states of a parser, which all lead to what is written
// behind them.
func (k *compiler) parseStates(ps *parser, c *bmv2.Config, name string) {
	k.parsed = k.NewLabel()
	k.StoreConst(packetError, uint64(ps.codes.none))
	if k.states == nil {
		k.states = map[*parseState]asm.Label{}
	}
	if ps.first != nil {
		src := c.Parsers[max(0, slices.IndexFunc(c.Parsers, func(x *bmv2.Parser) bool { return x.Name == name }))]
		g := &parseGraph{compiler: k, codes: ps.codes, states: map[string]*bmv2.ParseState{}}
		for _, s := range src.ParseStates {
			g.states[s.Name] = s
		}
		if g.counts = ps.first.circular(map[*parseState]bool{}); g.counts {
			k.StoreConst(packetSteps, 0)
		}
		g.follow(ps.first)
		for len(g.later) > 0 {
			st := g.later[0]
			g.later = g.later[1:]
			if !k.Bound(k.states[st]) {
				g.follow(st)
			}
		}
	}
	k.Bind(k.parsed)
}

// circular reports whether the parser can come back to a state that it is in;
// open has those.
func (st *parseState) circular(open map[*parseState]bool) bool {
	if st == nil {
		return false
	}
	if on, seen := open[st]; seen {
		return on
	}
	open[st] = true
	for i := range st.cases {
		if st.cases[i].next.circular(open) {
			return true
		}
	}
	if st.others.circular(open) {
		return true
	}
	open[st] = false
	return false
}

// A parseGraph is a parser on its way to code.
type parseGraph struct {
	*compiler
	codes  errorCodes
	states map[string]*bmv2.ParseState
	counts bool // the states that a packet has been in
	later  []*parseState
}

func (g *parseGraph) label(st *parseState) asm.Label {
	if st == nil {
		return g.parsed
	}
	l, ok := g.compiler.states[st]
	if !ok {
		l = g.NewLabel()
		g.compiler.states[st] = l
	}
	if !g.Bound(l) {
		g.later = append(g.later, st)
	}
	return l
}

// follow writes states one behind the other.
func (g *parseGraph) follow(st *parseState) {
	for st != nil {
		l := g.label(st)
		if g.Bound(l) {
			break
		}
		g.Bind(l)
		st = g.state(st, g.states[st.name])
	}
	g.Jump(g.label(st))
}

// state writes a state and returns the one to write behind it.
func (g *parseGraph) state(st *parseState, src *bmv2.ParseState) *parseState {
	g.inPlace, g.known, g.takesArgs, g.Params = true, nil, false, nil
	defer func() { g.inPlace = false }()
	for i, op := range st.ops { // src is nil for what refuse has added
		if src == nil || !g.op(src.ParserOps[i]) {
			g.out(callout{parse: op}, g.parsed)
		}
	}
	if g.counts {
		enough := g.NewLabel()
		g.MemConst(asm.Cmp, packetSteps, maxParseStates)
		g.JumpIf(asm.NotEqual, enough)
		g.fail(g.codes.timeout)
		g.Bind(enough)
		g.MemConst(asm.Add, packetSteps, 1)
	}
	if len(st.cases) == 0 {
		return st.others
	}
	for i := range st.cases {
		g.label(st.cases[i].next)
	}
	if !g.key(st, src) {
		g.label(st.others)
		g.out(callout{next: st}, g.parsed)
		g.Jump(g.parsed) // never reached: next decides
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
func (g *parseGraph) fail(code int64) {
	g.StoreConst(packetError, uint64(code))
	g.Jump(g.parsed)
}

func (g *parseGraph) op(op *bmv2.ParserOp) bool {
	a := op.Parameters
	switch op.Op {
	case "extract":
		if a[0].Type == bmv2.TypeRegular {
			return g.extractHeader(g.Layout.HeaderNames[a[0].Name])
		}
	case "set":
		if a[1].Type == bmv2.TypeLookahead {
			return g.look(a[0], a[1])
		}
		return g.assignment(a[0], g.tree(a[1]))
	case "verify":
		holds, code := g.condition(a[0]), g.tree(a[1])
		if holds == nil || code == nil {
			return false
		}
		past := g.NewLabel()
		g.branch(holds, 0, past, true)
		g.eval(code, 0)
		g.Low32(pool[0])
		g.Store(packetError, pool[0])
		g.Jump(g.parsed)
		g.Bind(past)
		return true
	}
	return false
}

// maxPicked is the length of a header from which on it is not compiled.
const maxPicked = 256

// compiles reports whether headers of a type are read and written by code.
func compiles(t *vector.HeaderType) bool {
	return t.Chunks != nil && t.Bits <= 8*maxPicked && !slices.ContainsFunc(t.Chunks, func(c vector.Chunk) bool {
		return c.Wide && (c.Parts[0].Width%64 != 0 || c.Parts[0].Signed)
	})
}

// extractHeader reads a header from the packet.
func (g *parseGraph) extractHeader(h *vector.Header) bool {
	if !compiles(h.Type) || h.Metadata {
		return false
	}
	n, at := h.Type.Bits/8, 0
	g.need(n)
	for i := range h.Type.Chunks {
		c := &h.Type.Chunks[i]
		g.readChunk(c, h.Base, asm.At(asm.CX, at))
		at += c.Bytes
	}
	g.setValid(h)
	g.MemConst(asm.Add, packetHead, uint64(n))
	return true
}

// need makes CX point to what is not parsed yet, which must be n bytes. On Tofino
// there may be more behind the end.
func (g *parseGraph) need(n int) {
	again, enough := g.Here(), g.NewLabel()
	g.Load(asm.AX, packetEnd)
	g.Load(asm.CX, packetHead)
	g.Do(asm.Sub, asm.AX, asm.CX)
	g.DoConst(asm.Cmp, asm.AX, uint64(n))
	g.JumpIf(asm.GreaterEqual, enough)
	if g.sw.tofino != nil {
		g.out(callout{test: func(p *vector.State) bool { return p.More(n) }}, again)
	}
	g.fail(g.codes.tooShort)
	g.Bind(enough)
	g.DoMem(asm.Add, asm.CX, packetBuf)
}

// look stores the next bits of the packet in a field.
func (g *parseGraph) look(dst, src *bmv2.Expr) bool {
	pl, err := g.Place(dst)
	if err != nil || pl.Base != nil || pl.Field.Signed || pl.Field.VarLen || pl.Field.Width > 64 ||
		src.Offset != 0 || src.Width <= 0 || src.Width > 64 {
		return false
	}
	g.need(num.Bytes(src.Width))
	r := pool[0]
	g.Load(r, asm.At(asm.CX, 0))
	g.Swap(r, 8)
	g.ShiftConst(asm.Shr, r, byte(64-src.Width))
	if pl.Field.Width < src.Width {
		g.mask(r, num.Mask64(pl.Field.Width))
	}
	g.Store(word(pl.Field.Off), r)
	return true
}

// readChunk reads a chunk of a header; there are eight bytes more than the
// header has.
func (k *compiler) readChunk(c *vector.Chunk, base int, m asm.Mem) {
	r := pool[0]
	if c.Wide {
		for i := range c.Bytes / 8 {
			at := m
			at.Disp += int32(c.Bytes - 8 - 8*i)
			k.Load(r, at)
			k.Swap(r, 8)
			k.Store(word(base+c.Parts[0].Off+i), r)
		}
		return
	}
	switch c.Bytes {
	case 1, 2, 4, 8:
		k.LoadBytes(r, m, c.Bytes)
		k.Swap(r, c.Bytes)
	default:
		k.Load(r, m)
		k.Swap(r, 8)
		k.ShiftConst(asm.Shr, r, byte(c.Shift))
	}
	for i := range c.Parts {
		p, x := &c.Parts[i], r
		if i < len(c.Parts)-1 {
			x = pool[1]
			k.Move(x, r)
		}
		k.ShiftConst(asm.Shr, x, byte(p.Shift))
		switch {
		case p.Signed:
			k.ShiftConst(asm.Shl, x, byte(64-p.Width))
			k.ShiftConst(asm.Sar, x, byte(64-p.Width))
		case i > 0: // the first has nothing above it
			k.mask(x, p.Mask)
		}
		k.Store(word(base+p.Off), x)
	}
}

// key computes the key of a select into the first register of the pool.
func (g *parseGraph) key(st *parseState, src *bmv2.ParseState) bool {
	if st.key.bytes > 8 {
		return false
	}
	for i := range st.cases {
		if st.cases[i].set != nil {
			return false
		}
	}
	var parts []*tree
	for _, e := range src.TransitionKey {
		if e.Type != bmv2.TypeField {
			return false
		}
		t := g.tree(e)
		if t == nil {
			return false
		}
		parts = append(parts, t)
	}
	for i, t := range parts {
		q := &st.key.parts[i]
		g.loadField(pool[min(i, 1)], t.off, q.width)
		g.ShiftConst(asm.Shl, pool[min(i, 1)], byte(q.shift))
		if i > 0 {
			g.Do(asm.Or, pool[0], pool[1])
		}
	}
	return true
}

// matches sets the flags equal if the key is that of a case.
func (g *parseGraph) matches(c *parseCase, bytes int) {
	key := pool[0]
	if c.mask[0] != num.Mask64(8*bytes) {
		key = pool[1]
		g.Set(key, c.mask[0])
		g.Do(asm.And, key, pool[0])
	}
	if asm.Fits(c.value[0]) {
		g.DoConst(asm.Cmp, key, c.value[0])
		return
	}
	g.Set(asm.AX, c.value[0])
	g.Do(asm.Cmp, key, asm.AX)
}

// verifySums writes the verification of checksums.
func (k *compiler) verifySums(c *bmv2.Config) {
	sums := k.sw.verifies
	for _, src := range c.Checksums {
		if src.Verify != nil && !*src.Verify {
			continue
		}
		sum := sums[0]
		sums = sums[1:]
		skip := k.NewLabel()
		if !sum.header.Metadata {
			k.MemConst(asm.Cmp, word(sum.header.Base), 0)
			k.JumpIf(asm.Equal, skip)
		}
		k.sumCondition(sum, src, skip)
		if sum.calc.terms != nil {
			k.sum(sum.calc)
			k.DoMem(asm.Cmp, pool[0], word(sum.target.Off))
			k.JumpIf(asm.Equal, skip)
			k.StoreByte(packetSumBad, 1)
		} else {
			k.out(callout{do: func(p *vector.State) {
				if sum.calc.output(p) != p.W[sum.target.Off] {
					p.ChecksumError = true
				}
			}}, k.end)
		}
		k.Bind(skip)
	}
}

// sumCondition jumps if the condition of a checksum does not hold.
func (k *compiler) sumCondition(sum *checksum, src *bmv2.Checksum, skip asm.Label) {
	if sum.cond == nil {
		return
	}
	if b := k.condition(src.IfCond); b != nil {
		k.branch(b, 0, skip, false)
		return
	}
	yes := k.NewLabel()
	k.out(callout{test: sum.cond}, yes)
	k.Jump(skip)
	k.Bind(yes)
}

// sum computes the Internet checksum of a calculation's terms into the first
// register of the pool; see calculation.sumFields. A carry out of 64 bits counts
// one there, too.
func (k *compiler) sum(c *calculation) {
	r, x := pool[0], pool[1]
	invalid := k.NewLabel()
	k.Set(r, 0)
	k.MemConst(asm.Cmp, word(c.termsValid), 0)
	k.JumpIf(asm.Equal, invalid)
	for i := range c.terms {
		t := &c.terms[i]
		k.loadTerm(x, t)
		k.ShiftConst(asm.Shl, x, byte(t.shift))
		k.Do(asm.Add, r, x)
		k.DoConst(asm.Adc, r, 0)
	}
	for _, half := range []byte{32, 16, 16, 16} {
		k.Move(x, r)
		k.ShiftConst(asm.Shr, x, half)
		if half == 32 {
			k.Low32(r)
		} else {
			k.DoConst(asm.And, r, 0xffff)
		}
		k.Do(asm.Add, r, x)
	}
	k.Bind(invalid)
	k.Not(r)
	k.DoConst(asm.And, r, 0xffff)
}

func (k *compiler) loadTerm(x asm.Reg, t *sumTerm) {
	switch t.mask {
	case 0xff:
		k.LoadBytes(x, word(t.off), 1)
	case 0xffff:
		k.LoadBytes(x, word(t.off), 2)
	case 0xffffffff:
		k.LoadBytes(x, word(t.off), 4)
	default:
		k.Load(x, word(t.off))
		k.mask(x, t.mask)
	}
}

// compileDeparser writes what puts the headers before the payload.
func (k *compiler) compileDeparser(c *bmv2.Config) {
	k.deparse = k.Here()
	k.updateSums(c)
	k.beforeHeaders(k.sw.deparser, c, "deparser")
	k.emitHeaders(k.sw.deparser)
	k.Jump(k.end)
}

// beforeHeaders writes what a deparser does first.
func (k *compiler) beforeHeaders(d *deparser, c *bmv2.Config, name string) {
	if d.before.code == nil {
		return
	}
	src := c.Deparsers[max(0, slices.IndexFunc(c.Deparsers, func(x *bmv2.Deparser) bool { return x.Name == name }))]
	k.inPlace, k.known, k.takesArgs = true, nil, false
	k.primitives(d.before, src.Primitives)
	k.inPlace = false
}

// updateSums writes the update of checksums.
func (k *compiler) updateSums(c *bmv2.Config) {
	sums := k.sw.updates
	for _, src := range c.Checksums {
		if src.Update != nil && !*src.Update {
			continue
		}
		sum := sums[0]
		sums = sums[1:]
		skip := k.NewLabel()
		k.sumCondition(sum, src, skip)
		if f := sum.target; sum.calc.terms != nil && !f.Signed && f.Width >= 16 && f.Width <= 64 {
			k.sum(sum.calc)
			k.Store(word(f.Off), pool[0])
		} else {
			k.out(callout{do: func(p *vector.State) { sum.set(p, sum.calc.output(p)) }}, k.end)
		}
		k.Bind(skip)
	}
}

// emitHeaders writes the valid headers; where one of them is of a kind that is
// not compiled, Go does.
func (k *compiler) emitHeaders(d *deparser) {
	slow, end := k.NewLabel(), k.NewLabel()
	for _, h := range d.order {
		switch {
		case compiles(h.Type):
		case h.Metadata:
			k.Jump(slow)
		default:
			k.MemConst(asm.Cmp, word(h.Base), 0)
			k.JumpIf(asm.NotEqual, slow)
		}
	}
	at := asm.CX
	k.Load(at, packetHead)
	k.eachValid(d, func(h *vector.Header) { k.DoConst(asm.Sub, at, uint64(h.Type.Bits/8)) })
	k.Store(packetHead, at)
	k.DoMem(asm.Add, at, packetBuf)
	k.eachValid(d, func(h *vector.Header) {
		n := 0
		for i := range h.Type.Chunks {
			c := &h.Type.Chunks[i]
			k.writeChunk(c, h.Base, asm.At(at, n))
			n += c.Bytes
		}
		k.DoConst(asm.Add, at, uint64(n))
	})
	k.Jump(end)
	k.Bind(slow)
	k.out(callout{do: func(p *vector.State) { d.write(k.sw, p) }}, k.end)
	k.Bind(end)
}

// eachValid writes something that is done for each header that is valid.
func (k *compiler) eachValid(d *deparser, do func(*vector.Header)) {
	for _, h := range d.order {
		if !compiles(h.Type) {
			continue
		}
		skip := k.NewLabel()
		if !h.Metadata {
			k.MemConst(asm.Cmp, word(h.Base), 0)
			k.JumpIf(asm.Equal, skip)
		}
		do(h)
		k.Bind(skip)
	}
}

// writeChunk writes a chunk of a header to memory.
func (k *compiler) writeChunk(c *vector.Chunk, base int, m asm.Mem) {
	r := pool[0]
	if c.Wide {
		for i := range c.Bytes / 8 {
			at := m
			at.Disp += int32(c.Bytes - 8 - 8*i)
			k.Load(r, word(base+c.Parts[0].Off+i))
			k.Swap(r, 8)
			k.Store(at, r)
		}
		return
	}
	for i := range c.Parts {
		p := &c.Parts[i]
		k.loadField(pool[min(i, 1)], base+p.Off, p.Width)
		k.ShiftConst(asm.Shl, pool[min(i, 1)], byte(p.Shift))
		if i > 0 {
			k.Do(asm.Or, r, pool[1])
		}
	}
	switch c.Bytes {
	case 1, 2, 4, 8:
		k.Swap(r, c.Bytes)
		k.StoreBytes(m, r, c.Bytes)
		return
	}
	k.ShiftConst(asm.Shl, r, byte(64-8*c.Bytes))
	k.Swap(r, 8)
	for left := c.Bytes; left > 0; {
		n := 4
		for n > left {
			n /= 2
		}
		k.StoreBytes(m, r, n)
		k.ShiftConst(asm.Shr, r, byte(8*n))
		m.Disp += int32(n)
		left -= n
	}
}
