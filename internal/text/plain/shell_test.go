package plain

import "testing"

func TestShell(t *testing.T) {
	for want, words := range map[string][]string{
		"p4lb gen --set tb=500us":            {"p4lb", "gen", "--set", "tb=500us"},
		"p4lb ''":                            {"p4lb", ""},
		`p4lb 'my file' '$HOME' 'it'\''s'`:   {"p4lb", "my file", "$HOME", "it's"},
		"p4lb lab --loads 10,50 größer.yaml": {"p4lb", "lab", "--loads", "10,50", "größer.yaml"},
	} {
		if got := Shell(words); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}
