// Package share encodes the state of the playground into the address of its page.
package share

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
)

// A State is the content of a link to the playground. Empty fields have the values of a new page.
type State struct {
	View    string `json:"view"` // write, packets, network or learn
	Name    string `json:"name,omitempty"`
	Program string `json:"program,omitempty"`
	Test    string `json:"test,omitempty"`
	YAML    string `json:"yaml,omitempty"`
}

// Local is the address of the page that p4lb play serves by default.
const Local = "http://127.0.0.1:9465/"

// maxLink bounds the encoded state. The page rejects longer ones.
const maxLink = 60000

// Link returns the address of a state on the page at base, or "" if the state is
// too large for an address.
func Link(base string, s State) string {
	text, err := json.Marshal(struct {
		V int `json:"v"`
		State
	}{1, s})
	if err != nil {
		return ""
	}
	var b bytes.Buffer
	z, _ := flate.NewWriter(&b, flate.BestCompression) // a valid level
	z.Write(text)
	z.Close() // a bytes.Buffer never fails
	code := base64.RawURLEncoding.EncodeToString(b.Bytes())
	if len(code) > maxLink {
		return ""
	}
	return base + "#s=" + code
}
