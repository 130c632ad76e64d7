package server

import (
	"testing"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// TestEntryNumbers: an entry keeps its handle, each entry of a pipe has its own, and 1 is the
// handle of the default entry.
func TestEntryNumbers(t *testing.T) {
	table := &matchTable{}
	for i, c := range []struct {
		at   entryAt
		want uint32
	}{{entryAt{0, 7}, 2}, {entryAt{0, 8}, 3}, {entryAt{0, 7}, 2}, {entryAt{1, 7}, 4}, {entryAt{0, 8}, 3}} {
		if got := table.number(c.at); got != c.want || table.told[got] != c.at {
			t.Errorf("entry %d, %v: handle %d of %v, want %d", i, c.at, got, table.told[got], c.want)
		}
	}
}

// TestPossible: types of updates that BfRt does not have are refused for every table.
func TestPossible(t *testing.T) {
	for kind, want := range map[wire.Update_Type]bool{
		wire.Update_UNSPECIFIED: false, wire.Update_INSERT: true, wire.Update_MODIFY: true, wire.Update_DELETE: true, wire.Update_RESET: true, wire.Update_RESET + 1: false, -1: false,
	} {
		if err := possible(kind, &wire.TableEntry{}); (err == nil) != want {
			t.Errorf("type %v: %v, want it possible: %v", kind, err, want)
		}
	}
}
