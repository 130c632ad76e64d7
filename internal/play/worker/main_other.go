//go:build !js

package main

import (
	"fmt"
	"os"
)

// main refuses to run outside a browser.
func main() {
	fmt.Fprintln(os.Stderr, "error: worker: it runs in a browser alone: build it for GOOS=js GOARCH=wasm, as make site does")
	os.Exit(1)
}
