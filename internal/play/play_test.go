package play

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// ask answers a request, which must succeed.
func ask[A any](t *testing.T, name string, request any) A {
	t.Helper()
	var a A
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	answer := Call(context.Background(), name, text, nil)
	var bad Error
	if json.Unmarshal(answer, &bad) == nil && bad.Message != "" {
		t.Fatalf("%s: %s", name, bad.Message)
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatalf("%s: %v: %.200s", name, err, answer)
	}
	return a
}

// refused returns the error of a request, which must fail.
func refused(t *testing.T, name string, request any) Error {
	t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var bad Error
	if answer := Call(context.Background(), name, text, nil); json.Unmarshal(answer, &bad) != nil || bad.Message == "" {
		t.Fatalf("%s is answered: %.200s", name, answer)
	}
	return bad
}

// TestWalk follows the packets of an example, whose test has the expected packets.
func TestWalk(t *testing.T) {
	l := ask[Listing](t, "list", struct{}{})
	for _, e := range l.Examples {
		w := ask[walk](t, "packets", packetsRequest{Source{Name: e.Name + ".p4", Text: e.Text}, e.Test})
		if len(w.Failures) > 0 || len(w.Steps) == 0 || w.Sent == 0 {
			t.Errorf("%s: %d steps of %d packets, failures %q", e.Name, len(w.Steps), w.Sent, w.Failures)
		}
		again := ask[walk](t, "packets", packetsRequest{Source{Name: e.Name + ".p4", Text: e.Text}, w.Test})
		if len(again.Failures) > 0 {
			t.Errorf("%s: the written test fails: %q\n%s", e.Name, again.Failures, w.Test)
		}
	}
}

// TestSetups sends the first packets of every row: each row forwards them.
func TestSetups(t *testing.T) {
	for _, r := range ask[Listing](t, "list", struct{}{}).Rows {
		s := ask[initialTest](t, "setup", SchemeRequest{Name: r.Name})
		if strings.Contains(s.Test, "leaves its polynomial to the controller") {
			continue
		}
		g := ask[Generated](t, "generate", SchemeRequest{Name: r.Name})
		w := ask[walk](t, "packets", packetsRequest{Source{Name: r.Name + ".p4", Text: g.Files[0].Text}, s.Test})
		if len(w.Failures) > 0 || w.Received < 8 {
			t.Errorf("%s: %d of %d packets left, failures %q, messages %v", r.Name, w.Received, w.Sent, w.Failures, w.Messages)
		}
		if testing.Short() {
			break
		}
	}
}
