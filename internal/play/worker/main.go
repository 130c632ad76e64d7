//go:build js

// Command worker is the playground's engine for browsers, compiled to WebAssembly
// and run in a web worker. It defines the function p4lbCall(name, request,
// progress, done) in the worker's scope, which answers a request of package play,
// and then calls p4lbReady.
package main

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"syscall/js"

	"github.com/p4lb/p4lb/internal/play"
)

// memoryLimit is the soft limit of the heap, above which Go collects garbage more
// often.
const memoryLimit = 400 << 20

// gcPercent lets the heap grow between collections, because they block the only
// thread.
const gcPercent = 600

func main() {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	js.Global().Set("p4lbCall", js.FuncOf(func(_ js.Value, args []js.Value) any {
		name, request, progress := args[0].String(), []byte(args[1].String()), args[2]
		done := args[3]
		go func() {
			answer := play.Call(context.Background(), name, request, func(message any) {
				if text, err := json.Marshal(message); err == nil {
					progress.Invoke(string(text))
				}
			})
			done.Invoke(string(answer))
		}()
		return nil
	}))
	js.Global().Call("p4lbReady")
	select {}
}
