package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// stores returns the attacks by object stores. name is the length of the names
// in an endless listing: shorter names result in more entries.
func stores(name int) []attack {
	marker := func(w http.ResponseWriter, r *http.Request) bool {
		is := strings.HasSuffix(r.URL.Path, "/p4lb-store.json")
		if is {
			io.WriteString(w, `{"format": "p4lb-store 1"}`)
		}
		return is
	}
	forever := func(w http.ResponseWriter, r *http.Request, pause time.Duration, text string) {
		for err := error(nil); err == nil && r.Context().Err() == nil; {
			_, err = io.WriteString(w, text)
			if pause > 0 {
				http.NewResponseController(w).Flush()
				time.Sleep(pause)
			}
		}
	}
	pages := 0
	var list []attack
	for _, s := range []struct {
		name, says string
		args       []string
		answer     http.HandlerFunc
	}{
		{"no response", "too slow", []string{"results", "list"}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"a slow object", "too slow", []string{"results", "list"}, func(w http.ResponseWriter, r *http.Request) { forever(w, r, 10*time.Millisecond, "x") }},
		{"an endless object", "larger than", []string{"lab", "run", "x.yaml"}, func(w http.ResponseWriter, r *http.Request) { forever(w, r, 0, strings.Repeat("x", 1<<16)) }},
		{"an endless page", "EOF", []string{"results", "list"}, func(w http.ResponseWriter, r *http.Request) {
			if !marker(w, r) {
				io.WriteString(w, "<ListBucketResult>")
				forever(w, r, 0, strings.Repeat("<Contents><Key>experiments/x</Key></Contents>", 1000))
			}
		}},
		{"endless pages", "listing", []string{"results", "list"}, func(w http.ResponseWriter, r *http.Request) {
			if !marker(w, r) {
				pages++
				fmt.Fprintf(w, "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken>%s</ListBucketResult>", pages,
					numbered(1000, fmt.Sprintf("<Contents><Key>experiments/x-%0*x/#/experiment.json</Key></Contents>", name, pages)))
			}
		}},
		{"control characters", "denied", []string{"lab", "run", "x.yaml"}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "<Error><Code>denied</Code><Message>\u009b2J\u009b31m</Message></Error>")
		}},
	} {
		list = append(list, attack{
			name: "store: " + s.name, files: map[string]string{"x.yaml": experiment}, code: -1, says: s.says,
			args: append(s.args, "--store", "s3://bucket?endpoint=http://ADDRESS"),
			serve: func(l net.Listener) (stop func()) {
				server := &http.Server{Handler: s.answer}
				go server.Serve(l)
				return func() { server.Close() }
			},
		})
	}
	return list
}
