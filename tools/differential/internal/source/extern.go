package source

import (
	"fmt"
	"hash/crc32"
	"math/big"
)

// Object returns the declaration of an object. Executing it has no effect.
func Object(format string, args ...any) Stmt {
	return Do(fmt.Sprintf(format, args...), func(*Machine) {})
}

func (e *Expr) index(m *Machine) int { return int(e.Num(m).Int64()) }

// ReadRegister returns v1model's r.read(target, i).
func ReadRegister(r *Register, name string, target, i *Expr) Stmt {
	return Do(fmt.Sprintf("%s.read(%s, %s);", name, target.Text, i.Text), func(m *Machine) {
		place := target.ref(m)
		place.set(r.Cells[i.index(m)])
	})
}

// WriteRegister returns v1model's r.write(i, v).
func WriteRegister(r *Register, name string, i, v *Expr) Stmt {
	return Do(fmt.Sprintf("%s.write(%s, %s);", name, i.Text, v.Text), func(m *Machine) {
		n := i.index(m)
		r.Cells[n] = v.eval(m)
	})
}

// A RegisterAction is an object of Tofino. Its body changes Value, the content of a
// cell, and may set Result.
type RegisterAction struct {
	Name          string
	Of            *Register
	Value, Result *Var
	Body          *Block
}

// Object returns the declaration of the action and its register, named reg.
func (a *RegisterAction) Object(reg string, index Bits) Stmt {
	t := a.Value.Type
	return Stmt{blocks: []*Block{a.Body}, exec: func(*Machine) signal { return proceed }, print: func(p *printer) {
		p.Line("Register<%s, %s>(%d, %s) %s;", t, index, a.Of.Size, spell(t, a.Of.Initial.(*big.Int)), reg)
		p.Open(fmt.Sprintf("RegisterAction<%s, %s, %s>(%s) %s = {", t, index, t, reg, a.Name))
		p.block(fmt.Sprintf("void apply(inout %s %s, out %s %s) {", t, a.Value.Name, t, a.Result.Name), a.Body, "}")
		p.Close("};")
	}}
}

// Execute returns a.execute(i), which reads the cell, runs the body and writes the
// cell.
func (a *RegisterAction) Execute(i *Expr) *Expr {
	return Native(a.Value.Type, a.Name+".execute("+i.Text+")", func(m *Machine) Value {
		n := i.index(m)
		a.Value.cur, a.Result.cur = a.Of.Cells[n], zero(a.Result.Type)
		a.Body.exec(m)
		a.Of.Cells[n] = a.Value.cur
		return a.Result.cur
	})
}

// Count returns c.count(i).
func Count(c *Counter, name string, i *Expr) Stmt {
	return Do(name+".count("+i.Text+");", func(m *Machine) { c.Packets[i.index(m)]++ })
}

// A Meter is an array of meters that count packets. To be independent of time, a
// cell has bursts but rates of zero, so its committed and peak buckets only lose
// tokens (RFC 2698, colour-blind). A cell without bursts marks packets green.
type Meter struct {
	Name   string
	Bursts [][]int // for each cell, the committed and peak burst; nil without rates
	tokens [][]int
	Red    int64 // the number of the colour
}

// mark returns the colour of a packet.
func (t *Meter) mark(i int) *big.Int {
	left := t.tokens[i]
	switch {
	case left == nil:
		return new(big.Int)
	case left[1] == 0:
		return big.NewInt(t.Red)
	case left[0] == 0:
		t.tokens[i] = []int{0, left[1] - 1}
		return big.NewInt(1)
	}
	t.tokens[i] = []int{left[0] - 1, left[1] - 1}
	return new(big.Int)
}

// ExecuteMeter returns v1model's m.execute_meter(i, target).
func ExecuteMeter(t *Meter, name string, i, target *Expr) Stmt {
	return Do(fmt.Sprintf("%s.execute_meter(%s, %s);", name, i.Text, target.Text), func(m *Machine) {
		n, place := i.index(m), target.ref(m)
		place.set(t.mark(n))
	})
}

// Colour returns Tofino's m.execute(i).
func Colour(t *Meter, name string, i *Expr) *Expr {
	return Native(Bits{Width: 8}, name+".execute("+i.Text+")", func(m *Machine) Value { return t.mark(i.index(m)) })
}

// bytesOf returns the bits of a list, which must be whole bytes.
func bytesOf(m *Machine, list []*Expr) []byte {
	n, v := 0, new(big.Int)
	for _, e := range list {
		w := width(e.Type, nil)
		v.Lsh(v, uint(w)).Or(v, bitsOf(e.Type, e.eval(m)))
		n += w
	}
	return v.FillBytes(make([]byte, n/8))
}

// crc16 returns CRC-16/ARC: the polynomial 0x8005 with reflected bits.
func crc16(data []byte) uint64 {
	crc := uint16(0)
	for _, b := range data {
		crc ^= uint16(b)
		for range 8 {
			if crc&1 != 0 {
				crc = crc>>1 ^ 0xA001
			} else {
				crc >>= 1
			}
		}
	}
	return uint64(crc)
}

// csum16 returns the Internet checksum (RFC 1071).
func csum16(data []byte) uint64 {
	sum := uint64(0)
	for i, b := range data {
		sum += uint64(b) << (8 * (1 - i%2))
	}
	for sum>>16 != 0 {
		sum = sum&0xFFFF + sum>>16
	}
	return ^sum & 0xFFFF
}

// hashOf returns the value of a hash algorithm.
func hashOf(algorithm string, data []byte) uint64 {
	switch algorithm {
	case "crc32", "CRC32":
		return uint64(crc32.ChecksumIEEE(data))
	case "csum16":
		return csum16(data)
	}
	return crc16(data)
}

// list formats expressions in braces.
func list(exprs []*Expr) string {
	text := arguments(exprs)
	return "{" + text[1:len(text)-1] + "}"
}

// Hash returns v1model's hash(target, algorithm, base, data, max), which computes
// base plus the hash modulo max.
func Hash(target *Expr, algorithm string, base, most *Expr, data []*Expr) Stmt {
	text := fmt.Sprintf("hash(%s, HashAlgorithm.%s, %s, %s, %s);", target.Text, algorithm, base.Text, list(data), most.Text)
	return Do(text, func(m *Machine) {
		place := target.ref(m)
		low := base.Num(m)
		v := new(big.Int).SetUint64(hashOf(algorithm, bytesOf(m, data)))
		v.Mod(v, most.Num(m)).Add(v, low)
		place.set(wrap(target.Type.(Bits), v))
	})
}

// GetHash returns Tofino's h.get(data).
func GetHash(name, algorithm string, t Bits, data []*Expr) *Expr {
	return Native(t, name+".get("+list(data)+")", func(m *Machine) Value {
		return wrap(t, new(big.Int).SetUint64(hashOf(algorithm, bytesOf(m, data))))
	})
}

// UpdateChecksum returns v1model's update_checksum, or target = c.update(data) for
// Tofino.
func UpdateChecksum(cond, target *Expr, object string, data []*Expr) Stmt {
	text := fmt.Sprintf("update_checksum(%s, %s, %s, HashAlgorithm.csum16);", cond.Text, list(data), target.Text)
	if object != "" {
		text = fmt.Sprintf("%s = %s.update(%s);", target.Text, object, list(data))
	}
	return Do(text, func(m *Machine) {
		if truth(cond.eval(m)) {
			target.ref(m).set(new(big.Int).SetUint64(csum16(bytesOf(m, data))))
		}
	})
}

// VerifyChecksum returns v1model's verify_checksum.
func VerifyChecksum(cond, sum *Expr, data []*Expr) Stmt {
	text := fmt.Sprintf("verify_checksum(%s, %s, %s, HashAlgorithm.csum16);", cond.Text, list(data), sum.Text)
	return Do(text, func(m *Machine) {
		if truth(cond.eval(m)) && sum.Num(m).Uint64() != csum16(bytesOf(m, data)) {
			m.std("checksum_error", big.NewInt(1))
		}
	})
}

// SendDigest returns v1model's digest, or d.pack in Tofino's deparser.
func SendDigest(t *Struct, object string, data []*Expr) Stmt {
	text := fmt.Sprintf("digest<%s>(1, %s);", t.Name, list(data))
	if object != "" {
		text = object + ".pack(" + list(data) + ");"
	}
	return Do(text, func(m *Machine) {
		d := Digest{}
		for _, e := range data {
			w := width(e.Type, nil)
			d.Data = append(d.Data, bitsOf(e.Type, e.eval(m)).FillBytes(make([]byte, (w+7)/8))...)
		}
		m.Digests = append(m.Digests, d)
	})
}

// Clone returns clone_preserving_field_list with field list 1.
func Clone(kind string, session int) Stmt {
	return Do(fmt.Sprintf("clone_preserving_field_list(CloneType.%s, %d, 1);", kind, session), func(m *Machine) {
		m.clone = &cloning{session, 1}
	})
}

// Again returns resubmit or recirculate with field list 1.
func Again(kind string) Stmt {
	return Do(kind+"_preserving_field_list(1);", func(m *Machine) { m.again = 1 })
}

// EmitMirror returns m.emit(session, header) in Tofino's deparser; t is nil without
// a header.
func EmitMirror(t *Struct, session int, data []*Expr) Stmt {
	text := fmt.Sprintf("mirror.emit(%d);", session)
	if t != nil {
		text = fmt.Sprintf("mirror.emit<%s>(%d, %s);", t.Name, session, list(data))
	}
	return Do(text, func(m *Machine) { m.mirror = &mirrored{uint32(session), bytesOf(m, data)} })
}

// EmitResubmit returns the resubmit in Tofino's deparser.
func EmitResubmit(object string) Stmt {
	return Do(object+".emit();", func(m *Machine) { m.resubmit = []byte{} })
}
