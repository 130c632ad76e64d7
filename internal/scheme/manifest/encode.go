package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// JSON returns the manifest in the format of the files next to generated programs.
func (m *Manifest) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}
	return b.Bytes(), nil
}

// YAML returns the manifest in the style of manually written files.
func (m *Manifest) YAML() ([]byte, error) {
	text, err := m.JSON()
	if err != nil {
		return nil, err
	}
	out, err := yaml.JSONToYAML(text)
	if err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}
	return []byte(strings.TrimSpace(string(out)) + "\n"), nil
}
