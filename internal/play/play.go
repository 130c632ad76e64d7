// Package play is the engine behind the playground: it generates, checks and formats
// programs, follows packets through them and runs experiments. Requests and answers
// are JSON. A browser runs the package as WebAssembly in a web worker, and p4lb play
// serves it over HTTP.
//
// The package calls the same functions as p4lb's verbs, so results are
// byte-identical. The engine opens no files and no connections, and limits the work
// of a request.
package play

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
)

// maxRequest limits a request in bytes.
const maxRequest = 8 << 20

// A Progress receives messages about a long request. The engine calls it from one
// goroutine at a time.
type Progress func(message any)

// An Error is the answer to a request that failed.
type Error struct {
	Message string `json:"error"`
	// Line is the line of the request's text, or 0 if unknown.
	Line int `json:"line,omitempty"`
	// Messages are errors in the files of the request.
	Messages []Message `json:"messages,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// calls maps the names of requests to functions.
var calls = map[string]func(ctx context.Context, request []byte, p Progress) (any, error){
	"list":     call(func(context.Context, struct{}, Progress) (*Listing, error) { return list(), nil }),
	"scheme":   call(describeScheme),
	"block":    call(copyBlock),
	"adopt":    call(adopt),
	"manifest": call(firstManifest),
	"compare":  call(compare),
	"generate": call(generate),
	"check":    call(check),
	"format":   call(formatProgram),
	"setup":    call(setup),
	"capture":  call(readCapture),
	"packets":  call(packets),
	"compose":  call(compose),
	"run":      call(run),
}

// Call answers the request with the given name. The answer is always JSON; if the
// request fails, it is an Error. Call turns panics into Errors, so that the page
// keeps working.
func Call(ctx context.Context, name string, request []byte, p Progress) (answer []byte) {
	defer func() {
		if bad := recover(); bad != nil {
			stack := make([]byte, 2048)
			answer = encode(&Error{Message: fmt.Sprintf("internal error: %v\n%s", bad, stack[:runtime.Stack(stack, false)])})
		}
	}()
	if p == nil {
		p = func(any) {}
	}
	do, ok := calls[name]
	switch {
	case !ok:
		return encode(&Error{Message: fmt.Sprintf("unknown request %q: want one of %s", name, strings.Join(slices.Sorted(maps.Keys(calls)), ", "))})
	case len(request) > maxRequest:
		return encode(&Error{Message: fmt.Sprintf("the request has %d bytes: want at most %d", len(request), maxRequest)})
	}
	out, err := do(ctx, request, p)
	if err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			e = &Error{Message: err.Error()}
		}
		return encode(e)
	}
	return encode(out)
}

// call wraps a function with JSON decoding and encoding.
func call[Q, A any](do func(context.Context, Q, Progress) (A, error)) func(context.Context, []byte, Progress) (any, error) {
	return func(ctx context.Context, request []byte, p Progress) (any, error) {
		var q Q
		d := json.NewDecoder(bytes.NewReader(request))
		d.DisallowUnknownFields()
		if err := d.Decode(&q); err != nil {
			return nil, &Error{Message: "bad request: " + err.Error()}
		}
		return do(ctx, q, p)
	}
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte(`{"error":"the answer cannot be encoded"}`)
	}
	return b.Bytes()
}
