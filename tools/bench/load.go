package bench

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// The sizes of the measurements of the control plane.
const (
	benchRoutes  = 100_000
	benchACL     = 10_000
	loadBatch    = 1000 // updates per request that loads a table
	writeBatch   = 100  // updates per request that changes entries
	writeBatches = 20   // requests per run, half of them inserts
	smallReads   = 20   // reads per run
	benchLookups = 1 << 16
	lookupRun    = 1 << 12 // lookups per run, shorter than a time slice
)

// id returns the P4Runtime id of an object in the program.
func (r *controlRig) id(name string) uint32 {
	info := r.config.GetP4Info()
	var all []interface{ GetPreamble() *configv1.Preamble }
	for _, t := range info.GetTables() {
		all = append(all, t)
	}
	for _, a := range info.GetActions() {
		all = append(all, a)
	}
	for _, x := range info.GetRegisters() {
		all = append(all, x)
	}
	for _, x := range all {
		if x.GetPreamble().GetName() == name {
			return x.GetPreamble().GetId()
		}
	}
	return 0 // the server rejects it
}

func tableUpdate(typ p4v1.Update_Type, e *p4v1.TableEntry) *p4v1.Update {
	return &p4v1.Update{Type: typ, Entity: &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: e}}}
}

// canonical encodes a number without leading zero bytes.
func canonical(v uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, v)
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return b
}

// routes returns updates of n different prefixes of 24 to 26 bits.
func (r *controlRig) routes(typ p4v1.Update_Type, n int) []*p4v1.Update {
	table, action := r.id("BenchIngress.routes"), r.id("BenchIngress.forward")
	var list []*p4v1.Update
	for i := range uint64(n) {
		list = append(list, tableUpdate(typ, &p4v1.TableEntry{
			TableId: table,
			Match: []*p4v1.FieldMatch{{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{
				Value: canonical(10<<24 + i<<8), PrefixLen: int32(24 + i%3),
			}}}},
			Action: &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: &p4v1.Action{ActionId: action, Params: []*p4v1.Action_Param{
				{ParamId: 1, Value: canonical(i % 64)}, {ParamId: 2, Value: canonical(1 + i)},
			}}}},
		}))
	}
	return list
}

func chunks(list []*p4v1.Update, n int) [][]*p4v1.Update {
	return slices.Collect(slices.Chunk(list, n))
}

// benchLoad measures filling the table of routes.
func (r *controlRig) benchLoad(runs int) ([]Measurement, error) {
	batches := chunks(r.routes(p4v1.Update_INSERT, benchRoutes), loadBatch)
	if err := r.configure(); err != nil {
		return nil, err
	}
	fresh := true
	spent, how, err := r.timed(min(runs, 5), 4*time.Second, func() error {
		if !fresh { // the time is negligible compared to 100,000 entries
			if err := r.configure(); err != nil {
				return err
			}
		}
		fresh = false
		return r.write(batches...)
	})
	return []Measurement{{"p4rt.load", spent.Seconds(), "s", "load 100,000 LPM routes, 1000 per request: " + how}}, err
}

// benchWrites measures changes to the table filled by benchLoad.
func (r *controlRig) benchWrites(runs int) ([]Measurement, error) {
	if err := r.write(chunks(r.routes(p4v1.Update_DELETE, writeBatch), writeBatch)...); err != nil {
		return nil, err
	}
	in, out := r.routes(p4v1.Update_INSERT, writeBatch), r.routes(p4v1.Update_DELETE, writeBatch)
	spent, how, err := r.timed(runs, time.Second, func() error {
		for range writeBatches / 2 {
			if err := r.write(in, out); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []Measurement{{"p4rt.writes", writeBatch * writeBatches / spent.Seconds(), "1/s",
		"insert and delete LPM routes, 100 per request: " + how}}, r.write(in)
}

// benchReads measures reading whole registers with four-byte cells.
func (r *controlRig) benchReads(runs int) ([]Measurement, error) {
	small := &p4v1.RegisterEntry{RegisterId: r.id("BenchIngress.small")}
	large := &p4v1.RegisterEntry{RegisterId: r.id("BenchIngress.large")}
	for _, e := range []*p4v1.RegisterEntry{small, large} {
		if err := r.write([]*p4v1.Update{{Type: p4v1.Update_MODIFY, Entity: &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: &p4v1.RegisterEntry{
			RegisterId: e.GetRegisterId(), Data: &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: canonical(0x12345678)}},
		}}}}}); err != nil {
			return nil, err
		}
	}
	of := func(e *p4v1.RegisterEntry) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: e}}
	}
	few, fewHow, err := r.timed(runs, time.Second, func() error {
		for range smallReads {
			if err := r.read(of(small), 512); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	many, manyHow, err := r.timed(runs, 2*time.Second, func() error { return r.read(of(large), 65536) })
	return []Measurement{
		{"p4rt.read_512", smallReads / few.Seconds(), "1/s", "read a register of 512 cells, 20 times per run: " + fewHow},
		{"p4rt.read_65536", milliseconds(many), "ms", "read a register of 65,536 cells: " + manyHow},
	}, err
}

// benchLookups measures lookups in the two large tables as for a packet.
func (r *controlRig) benchLookups(runs int) ([]Measurement, error) {
	chance := rand.New(rand.NewPCG(1, 2))
	var keys [][]uint64
	for range benchLookups {
		keys = append(keys, []uint64{10<<24 + uint64(chance.IntN(benchRoutes))<<8 + uint64(chance.IntN(64))})
	}
	lpm, err := r.lookup("BenchIngress.routes", runs, keys)
	if err != nil {
		return nil, err
	}
	acl, keys := r.accessList(chance)
	if err := r.write(chunks(acl, loadBatch)...); err != nil {
		return nil, err
	}
	ternary, err := r.lookup("BenchIngress.acl", runs, keys)
	how := " random keys that match, CPU time of one core"
	return []Measurement{
		{"switch.lpm_100k", lpm, "ns", "lookup among 100,000 IPv4 prefixes," + how},
		{"switch.ternary_10k", ternary, "ns", "lookup among 10,000 ternary entries over five fields," + how},
	}, err
}

// accessList returns a list over the 5-tuple with prefixes of any length, and
// with ports and protocols of which half are wildcards. Each key matches at
// least one entry.
func (r *controlRig) accessList(chance *rand.Rand) (list []*p4v1.Update, keys [][]uint64) {
	widths := []int{32, 32, 8, 16, 16}
	table, action := r.id("BenchIngress.acl"), r.id("BenchIngress.drop")
	for i := range benchACL {
		e := &p4v1.TableEntry{TableId: table, Priority: int32(i + 1), Action: &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: &p4v1.Action{ActionId: action}}}}
		key := make([]uint64, len(widths))
		for f, width := range widths {
			all := uint64(1)<<width - 1
			mask := all &^ (1<<chance.IntN(25) - 1)
			if f >= 2 {
				mask = all * uint64(chance.IntN(2))
			}
			key[f] = chance.Uint64() & all
			if mask != 0 { // a wildcard field is omitted
				e.Match = append(e.Match, &p4v1.FieldMatch{FieldId: uint32(f + 1), FieldMatchType: &p4v1.FieldMatch_Ternary_{
					Ternary: &p4v1.FieldMatch_Ternary{Value: canonical(key[f] & mask), Mask: canonical(mask)},
				}})
			}
		}
		list, keys = append(list, tableUpdate(p4v1.Update_INSERT, e)), append(keys, key)
	}
	chance.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return list, keys
}

// lookup returns the median time of a lookup in ns.
func (r *controlRig) lookup(table string, runs int, keys [][]uint64) (float64, error) {
	probe, err := r.sw.Probe(table)
	if err != nil {
		return 0, err
	}
	runtime.GC() // garbage of the entries
	width := len(keys[0])
	flat, at := slices.Concat(keys...), 0 // concatenated, so that the keys cost no time
	spent, err := repeat(r.ctx, runs*len(keys)/lookupRun, time.Second, threadTime, func() error {
		for range lookupRun {
			if _, ok := probe.Find(flat[at : at+width]...); !ok {
				return errors.New("a key matches no entry")
			}
			at = (at + width) % len(flat)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return float64(median(spent).Nanoseconds()) / lookupRun, nil
}
