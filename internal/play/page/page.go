// Package page embeds the playground's page: HTML, CSS and JavaScript without
// external resources.
package page

import (
	"embed"
	"strings"
)

// Files are the files of the page.
//
//go:embed *.html *.css *.js
var Files embed.FS

// engineMark is the element of index.html that specifies where the engine runs.
const engineMark = `<meta name="engine" content="worker">`

// Served returns index.html for a server that runs the engine: the page sends
// requests to api/NAME instead of a web worker.
func Served() ([]byte, error) {
	text, err := Files.ReadFile("index.html")
	if err != nil {
		return nil, err
	}
	return []byte(strings.Replace(string(text), engineMark, `<meta name="engine" content="http">`, 1)), nil
}
