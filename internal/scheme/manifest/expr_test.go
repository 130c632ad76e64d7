package manifest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

func TestExpr(t *testing.T) {
	facts := func(f manifest.Fact, node string) (int64, error) {
		switch {
		case f == manifest.EgressPort && node == "s1":
			return 7, nil
		case f == manifest.EgressPort:
			return 3, nil
		case f == manifest.PathCount:
			return 4, nil
		}
		return 0, errors.New("not known")
	}
	for text, want := range map[string]int64{
		"10": 10, "0x812": 0x812, "0b101": 5, "10.0.1.2": 0x0a000102, "08:00:00:00:01:11": 0x080000000111,
		"$port": 3, "$port(s1)": 7, "$port-1": 2, "1 + 2 * 3": 7, "(1 + 2) * 3": 9, "7 % 4": 3, "1 << 4 | 1": 17,
		"$paths > 1 ? 1 : $leaf": 1, "$paths > 4 && $leaf": 0, "!$paths": 0, "-1 + 2": 1, "6 & 3": 2, "6 ^ 3": 5,
		"1 == 1 && 2 != 2 || 3 <= 3": 1, "18446744073709551615": -1,
	} {
		e, err := manifest.ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e.Eval(facts); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
		if again, err := manifest.ParseExpr(e.String()); err != nil || again.String() != e.String() {
			t.Errorf("%s is written as %s: %v", text, e, err)
		}
	}
}

func TestExprRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":           "a value is missing",
		"1 +":        "a value is missing",
		"(1":         "a ) is missing",
		"1 2":        `"2" is not expected there`,
		"$paths ? 1": "? wants a :",
		"hop.port":   `"hop.port": want a number, an address, or a fact such as $port`,
		"$prt":       "there is no fact $prt; did you mean port?",
		"999999999999999999999999999999999999999999": "more than 128 bits",
		"* 2": "stands where a value is expected",
	} {
		if _, err := manifest.ParseExpr(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := manifest.ParseExpr(strings.Repeat("(", 1000)); err == nil {
		t.Error("a deep expression passes")
	}
	for _, text := range []string{"1 % 0", "1 << 64", "$leaf"} {
		e, err := manifest.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Eval(func(manifest.Fact, string) (int64, error) { return 0, errors.New("no") }); err == nil {
			t.Errorf("%s has a value", text)
		}
	}
}

func FuzzExpr(f *testing.F) {
	for _, s := range []string{"$port(s1) + 1", "1 ? 2 : 3", "08:00:00:00:01:11", "!(-1)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := manifest.ParseExpr(text)
		if err != nil {
			return
		}
		again, err := manifest.ParseExpr(e.String())
		if err != nil {
			t.Fatalf("%q is written as %q: %v", text, e, err)
		}
		one := func(manifest.Fact, string) (int64, error) { return 1, nil }
		a, errA := e.Eval(one)
		b, errB := again.Eval(one)
		if a != b || (errA == nil) != (errB == nil) {
			t.Fatalf("%q: %d and %d", text, a, b)
		}
	})
}
