package gate

import (
	"io"
	"net"
	"net/http"
	"testing"
)

// TestRequestsKeepConnections: clients that send no complete request do not push out a client
// that waits for its answer.
func TestRequestsKeepConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, others := make(chan struct{}), make(chan struct{})
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-others
		io.WriteString(w, "done")
	})}
	go ServeHTTP(s, l, 3)
	defer s.Close()
	go func() {
		<-asked
		for range 8 {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
				break
			}
			defer c.Close()
			io.WriteString(c, "GET /ne")
		}
		close(others)
	}()
	r, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || string(text) != "done" {
		t.Errorf("%q, %v", text, err)
	}
}
