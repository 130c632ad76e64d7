package share

import (
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestLink reads a link as the page does.
func TestLink(t *testing.T) {
	want := State{View: "network", YAML: "name: x\nschemes: [ecmp]\n"}
	base, code, ok := strings.Cut(Link(Local, want), "#s=")
	if !ok || base != Local {
		t.Fatalf("base %q", base)
	}
	data, err := base64.RawURLEncoding.DecodeString(code)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		V int
		State
	}
	if err := json.NewDecoder(flate.NewReader(strings.NewReader(string(data)))).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.V != 1 || got.State != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte('!' + rand.IntN(90))
	}
	if link := Link(Local, State{YAML: string(noise)}); link != "" {
		t.Errorf("a link of %d characters", len(link))
	}
}
