package lab

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/own"
)

// The numbers of the packet generator's tables and fields come from the SDE's
// bf_rt_pktgen_tf1.json.
const (
	generatorPorts  = 0xff030001
	generatorApps   = 0xff030002
	generatorBuffer = 0xff030003
)

// generated are the packets by batch at some times. The packets of a trigger are 10 µs
// apart.
var generated = map[time.Duration]string{
	2990 * time.Microsecond: "[0 0]", 3005 * time.Microsecond: "[1 0]", 3500 * time.Microsecond: "[1 1]", 6500 * time.Microsecond: "[2 2]",
	7015 * time.Microsecond: "[4 2]", 8 * time.Millisecond: "[5 2]", 10 * time.Millisecond: "[6 3]", 19 * time.Millisecond: "[9 6]",
}

// TestServeGenerator: the timers of the packet generator run in virtual time. A periodic
// application triggers every 3 ms from the moment at which a controller enables it, with
// two batches of one packet. Another one triggers once, after 7 ms, with three packets of
// batch 0. The program counts the packets by batch.
func TestServeGenerator(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir+"/generator", os.DirFS("testdata/generator")); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(selecting, "./selector", "./generator", 1)
	x, err := spec.Load("experiment", []byte(text), spec.NoFiles, &scheme.Library{Sources: []scheme.Source{own.Source(dir)}})
	if err != nil {
		t.Fatal(err)
	}
	r, pages, _ := serving(&Serve{Every: 4 * time.Millisecond, Wait: 1, Timeout: time.Minute, BfRt: true})
	var work sync.WaitGroup
	work.Go(func() {
		page := <-pages
		c := newBfrtClient(t, page)
		defer c.leave()
		defer get(t, page+"/done")
		l1, name := c.client("l1"), c.switches["l1"].P4Name
		number := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
		short := func(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }
		key := func(list ...uint32) *wire.TableEntry_Key {
			k := &wire.TableKey{}
			for i, n := range list {
				k.Fields = append(k.Fields, &wire.KeyField{FieldId: uint32(i + 1), MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: number(n)}}})
			}
			return &wire.TableEntry_Key{Key: k}
		}
		field := func(id uint32, b []byte) *wire.DataField {
			return &wire.DataField{FieldId: id, Value: &wire.DataField_Stream{Stream: b}}
		}
		flag := func(id uint32) *wire.DataField {
			return &wire.DataField{FieldId: id, Value: &wire.DataField_BoolVal{BoolVal: true}}
		}
		var list []*wire.Update
		modify := func(table uint32, k *wire.TableEntry_Key, action uint32, fields ...*wire.DataField) {
			e := &wire.TableEntry{TableId: table, Value: k, Data: &wire.TableData{ActionId: action, Fields: fields}}
			list = append(list, &wire.Update{Type: wire.Update_MODIFY, Entity: &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}}})
		}
		modify(generatorPorts, key(68), 0, flag(2))
		modify(generatorBuffer, key(16, 60), 0, field(1, make([]byte, 60)))
		modify(generatorApps, key(1), 2, field(1, number(3_000_000)), flag(12), field(13, short(60)), field(14, short(16)), field(17, short(1)), field(18, short(0)))
		modify(generatorApps, key(2), 1, field(1, number(7_000_000)), flag(12), field(13, short(60)), field(14, short(16)), field(17, short(0)), field(18, short(2)))
		write := func(list ...*wire.Update) error {
			_, err := l1.Write(context.Background(), &wire.WriteRequest{Target: &wire.TargetDevice{PipeId: wire.AllPipes}, ClientId: 1, P4Name: name, Updates: list})
			return err
		}
		if err := write(list...); err != nil {
			t.Error(err)
			return
		}
		down := &wire.TableEntry{TableId: generatorApps, Value: key(3), Data: &wire.TableData{ActionId: 3}}
		if err := write(&wire.Update{Type: wire.Update_MODIFY, Entity: &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: down}}}); err == nil {
			t.Error("an application for ports that go down is accepted")
		}
	})
	got := map[time.Duration]string{}
	r.Begin = func(v *View) error {
		for at := range generated {
			v.Net.At(at, func() {
				cells, err := v.Net.Switch("l1").Program().Registers().Range("I.made", 0, 2, nil)
				if got[at] = fmt.Sprint(cells); err != nil {
					t.Error(err)
				}
			})
		}
		return nil
	}
	_, err = r.Run(context.Background(), x)
	work.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range generated {
		if got[at] != want {
			t.Errorf("at %v: packets by batch %s, want %s", at, got[at], want)
		}
	}
}
