package thrift

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// statePrograms are the programs of the states in testdata/oracle/thrift-swap.jsonl, by the
// digest of the JSON that simple_switch ran.
var statePrograms = map[string]string{
	"78d97c6ef90df221764b281b0449ef04": "session.p4", "a0ffd0b2b050da7c9431e0422547686b": "swapped.p4", "456314f886e330384b668552ac7dc6c5": "many.p4",
}

// recordedStates returns the states that simple_switch 1.15.5 serialized, with the names of
// their programs.
func recordedStates(t *testing.T) (states [][]byte, programs []string) {
	t.Helper()
	for _, r := range oracle(t, "thrift-swap") {
		if r.Call != "standard:bm_serialize_state" {
			continue
		}
		var out map[string]struct{ Hex string }
		if err := json.Unmarshal(r.Out, &out); err != nil {
			t.Fatal(err)
		}
		state, err := hex.DecodeString(out["0:bytes"].Hex)
		if err != nil {
			t.Fatal(err)
		}
		head := len(stateVersion) + 1
		program := statePrograms[hex.EncodeToString(state[head:head+md5.Size])]
		if program == "" {
			t.Fatalf("the program of a state is unknown: %x", state[head:head+md5.Size])
		}
		states, programs = append(states, state), append(programs, program)
	}
	return states, programs
}

// owned replaces the digest of a state by the digest of the device's program: p4lb compiles
// to other JSON than the JSON of the record.
func owned(dev *p4rt.Device, state []byte) []byte {
	sum, head := md5.Sum(dev.Program()), len(stateVersion)+1
	return append(append(bytes.Clone(state[:head]), sum[:]...), state[head+md5.Size:]...)
}

// TestRestoreState restores what simple_switch saved: tables of each kind, handles with
// gaps and versions, members and groups, and meters. Saved again, the state is the same.
func TestRestoreState(t *testing.T) {
	states, programs := recordedStates(t)
	if len(states) < 7 {
		t.Errorf("%d states", len(states))
	}
	for i, state := range states {
		dev := newDevice(t, programs[i])
		want := owned(dev, state)
		if err := RestoreState(dev.Control(), dev.Program(), want); err != nil {
			t.Errorf("state %d of %s: %v", i+1, programs[i], err)
			continue
		}
		if got := serialized(t, dev); !bytes.Equal(got, want) {
			t.Errorf("state %d of %s:\n%s\nwant\n%s", i+1, programs[i], got, want)
		}
	}
}

func serialized(t *testing.T, dev *p4rt.Device) []byte {
	t.Helper()
	out, _ := serializeState(dev, nil)
	b, ok := out.([]byte)
	if !ok {
		t.Fatal(out)
	}
	return b
}

// TestRestoreBadState: a state that is changed or of another program is refused with its line.
func TestRestoreBadState(t *testing.T) {
	states, programs := recordedStates(t)
	dev := newDevice(t)
	state := []byte(nil)
	for i := range states {
		if programs[i] == "session.p4" && len(states[i]) > len(state) {
			state = states[i]
		}
	}
	if err := RestoreState(dev.Control(), dev.Program(), state); err == nil || !strings.Contains(err.Error(), "the state belongs to another program") {
		t.Errorf("the digest of another program: %v", err)
	}
	state = owned(dev, state)
	for _, c := range []struct{ from, to, want string }{
		{stateVersion, "06062016_1", "the first line is not 06062016_0: want a file of serialize_state"},
		{"SessionIngress.exact_one\n", "SessionIngress.exact_three\n", `"SessionIngress.exact_three": want the name of a table`},
		{"SessionIngress.exact_one\n", "SessionIngress.exact_one\n__NULL__\n9999999\n", "9999999 items: the state has"},
	} {
		text := strings.Replace(string(state), c.from, c.to, 1)
		if err := RestoreState(dev.Control(), dev.Program(), []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

// A state that ends after any line is refused, also if the end looks like the default action of
// a table without one.
func TestRestoreCutState(t *testing.T) {
	states, programs := recordedStates(t)
	head := len(stateVersion) + 1 + md5.Size + 1
	for i, state := range states {
		dev := newDevice(t, programs[i])
		state = owned(dev, state)
		lines := strings.SplitAfter(strings.TrimSuffix(string(state[head:]), "\n"), "\n")
		for n := range lines {
			for _, end := range []string{"", "-1\n"} {
				cut := append(bytes.Clone(state[:head]), strings.Join(lines[:n], "")+end...)
				if err := RestoreState(dev.Control(), dev.Program(), cut); err == nil {
					if n == len(lines)-1 && end != "" {
						continue // the last line may be the name of a node, which is not read
					}
					t.Errorf("state %d: %d of %d lines and %q are accepted", i+1, n, len(lines), end)
				}
			}
		}
	}
}

// A state with its entries in descending order of handles is restored in ascending order, so
// that each handle is the next one: the later of two equal entries is the one that is refused.
func TestRestoreDescendingState(t *testing.T) {
	dev := newDevice(t, "swapped.p4")
	const table = "SessionIngress.exact_one\ntbl_swapped55\n"
	before, after := "", ""
	states, programs := recordedStates(t)
	for i := range states {
		if head, tail, ok := strings.Cut(string(states[i]), table+"1\n0\n0\n0800\n"); ok && programs[i] == "swapped.p4" {
			before, after = string(owned(dev, []byte(head))), tail
		}
	}
	const end = "SessionIngress.nested\n0\n" // the node after a hit, no timeout
	action, after, ok := strings.Cut(after, end)
	if !ok {
		t.Fatal("no recorded state of swapped.p4 has one entry in SessionIngress.exact_one")
	}
	entries := func(handles ...int) []byte {
		text := before + table + fmt.Sprintf("%d\n", len(handles))
		for _, h := range handles {
			text += fmt.Sprintf("%d\n0\n%04x\n%s", h, 0x800+h, action+end)
		}
		return []byte(text + after)
	}
	if err := RestoreState(dev.Control(), dev.Program(), entries(9, 7, 4, 0)); err != nil {
		t.Fatal(err)
	}
	if got, want := serialized(t, dev), entries(0, 4, 7, 9); !bytes.Equal(got, want) {
		t.Errorf("restored:\n%s\nwant\n%s", got, want)
	}
	same := bytes.Replace(entries(7, 4), []byte("0807"), []byte("0804"), 1)
	if err := RestoreState(dev.Control(), dev.Program(), same); err == nil || !strings.Contains(err.Error(), "table SessionIngress.exact_one, entry 7: ") {
		t.Errorf("two equal entries: %v", err)
	}
}
