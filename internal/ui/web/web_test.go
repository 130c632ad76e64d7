package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/p4lb/p4lb/internal/ui/live"
)

// patience limits the waits of a test.
const patience = 3 * time.Minute

// aFrame is the frame number n of two switches. Each value grows by one per
// frame.
func aFrame(n int) *live.Frame {
	f := &live.Frame{Scheme: "ecmp", Fabric: "two", Time: time.Duration(n) * 500 * time.Millisecond, Wall: time.UnixMilli(1_700_000_000_000 + int64(n)*500)}
	for _, name := range []string{"l1", "s1"} {
		f.Switches = append(f.Switches, live.Switch{Name: name, Role: "leaf", Values: []live.Value{
			{Register: live.PortOutRate, Index: "port 1", Port: 1, Peer: "h1", Number: float64(n) * 1e6, Unit: "bit/s", Text: "some"},
			{Register: live.PortDrops, Index: "port 1", Port: 1, Peer: "h1", Number: 0, Text: "0"},
			{Register: "trend", Index: "port 1", Port: 1, Peer: "h1", Number: 2, Text: "rising"},
		}})
	}
	return f
}

// serve serves s until the test ends, and then closes all connections.
func serve(t *testing.T, s *Server) *httptest.Server {
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

// A stream is an open page.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	close func()
}

func openStream(t *testing.T, url string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s", answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<22)
	return &stream{t, lines, cancel}
}

// next returns the next event of one of the kinds.
func (s *stream) next(kinds ...string) (kind, data string) {
	s.t.Helper()
	for s.lines.Scan() {
		line := s.lines.Text()
		if k, ok := strings.CutPrefix(line, "event: "); ok {
			kind = k
		}
		if d, ok := strings.CutPrefix(line, "data: "); ok && slices.Contains(kinds, kind) {
			return kind, d
		}
	}
	s.t.Fatalf("the stream has ended before any of %v: %v", kinds, s.lines.Err())
	return "", ""
}

// TestStream opens a page: it receives the fabric and the series once, then
// frames. A second page also receives the history.
func TestStream(t *testing.T) {
	s := New(Options{Fabric: &Fabric{Name: "two", Nodes: []Node{{Name: "l1", Tier: 1}}}})
	h := serve(t, s)
	s.Show(aFrame(0)) // without readers
	first := openStream(t, h.URL)
	if kind, data := first.next("fabric", "series", "frame"); kind != "fabric" || !strings.Contains(data, `"name":"l1"`) {
		t.Fatalf("first comes %s %s", kind, data)
	}
	s.Show(aFrame(1))
	if kind, data := first.next("series", "frame"); kind != "series" || !strings.Contains(data, `["trend","port 1",1,"h1",0,0,"",""]`) {
		t.Fatalf("then comes %s %s", kind, data)
	}
	_, data := first.next("frame")
	var got struct {
		V, T, W int64
		X       [][]any
	}
	if err := json.Unmarshal([]byte(data), &got); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if want := "[[1e+06 0 [2 rising]] [1e+06 0 [2 rising]]]"; got.V != 1 || got.T != 500_000 || got.W != 1_700_000_000_500 || fmt.Sprint(got.X) != want {
		t.Errorf("the frame is %s, want version 1, 500000 us and %s", data, want)
	}
	s.Show(aFrame(2))
	first.next("frame")
	second := openStream(t, h.URL)
	for _, want := range []string{"series", "frame", "frame"} {
		if kind, _ := second.next("series", "frame"); kind != want {
			t.Fatalf("a second page gets %s, want %s", kind, want)
		}
	}
	// A switch without answer keeps its series.
	gone := aFrame(3)
	gone.Switches[1] = live.Switch{Name: "s1", Role: "leaf", Err: `no "route" to it`}
	s.Show(gone)
	if kind, data := first.next("series", "frame"); kind != "frame" || !strings.Contains(data, `"no \"route\" to it"`) {
		t.Errorf("a switch that has gone: %s %s", kind, data)
	}
	if _, data := first.next("event"); !strings.Contains(data, "s1") || !strings.Contains(data, "does not answer") {
		t.Errorf("the event is %s", data)
	}
	// Another program has other series, and a new history.
	other := aFrame(4)
	other.Scheme = "letflow"
	s.Show(other)
	if kind, _ := first.next("series", "frame"); kind != "series" {
		t.Errorf("another scheme begins with %s", kind)
	}
	s.End()
	first.next("end")
}

// TestNobodyLooks bounds the allocations for frames without readers.
func TestNobodyLooks(t *testing.T) {
	s := New(Options{})
	f := aFrame(0)
	s.Show(f)
	// Connections of other tests may end meanwhile and add allocations, so the
	// minimum of several measurements counts.
	least := math.Inf(1)
	for range 10 {
		least = min(least, testing.AllocsPerRun(100, func() { s.Show(f) }))
	}
	if least > 30 {
		t.Errorf("%v allocations for a frame without readers", least)
	}
	if s.coder.version != 0 || len(s.past) != 0 {
		t.Error("a frame has been encoded without readers")
	}
	if s.Watched() {
		t.Error("Watched is true without readers")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Await(ctx); err == nil {
		t.Error("Await has not waited")
	}
}

// TestReaders bounds the number of open pages. A closed page frees its place.
func TestReaders(t *testing.T) {
	s := New(Options{})
	h := serve(t, s)
	var open []*stream
	for range maxReaders {
		open = append(open, openStream(t, h.URL))
	}
	answer, err := http.Get(h.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one page more: %s", answer.Status)
	}
	open[0].close()
	for deadline := time.Now().Add(patience); ; {
		s.mu.Lock()
		n := s.readers
		s.mu.Unlock()
		if n < maxReaders {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the place of a page that has gone is not free")
		}
	}
	openStream(t, h.URL)
}

// TestSlowReader lets a reader stop reading. The other readers and the producer
// continue.
func TestSlowReader(t *testing.T) {
	s := New(Options{})
	h := serve(t, s)
	c, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if err := s.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 5000 {
			s.Show(aFrame(n))
		}
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("a page that takes nothing holds up the frames")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.past) > keptFrames || s.size > keptBytes {
		t.Errorf("%d frames of %d bytes are kept", len(s.past), s.size)
	}
}

// TestWhoMayLook sends requests with other host names, without the token and
// with it.
func TestWhoMayLook(t *testing.T) {
	get := func(s *Server, path, host string, head ...string) *http.Response {
		r := httptest.NewRequest("GET", path, nil)
		r.Host = host
		for i := 0; i < len(head); i += 2 {
			r.Header.Set(head[i], head[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
	here := New(Options{})
	for host, want := range map[string]int{
		"127.0.0.1:9464": 200, "localhost": 200, "[::1]:80": 200, "evil.example": 421, "localhost.evil.example": 421, "10.0.0.1:9464": 421,
	} {
		if got := get(here, "/", host); got.StatusCode != want {
			t.Errorf("as %s: %s, want %d", host, got.Status, want)
		}
	}
	guarded := New(Options{Token: "s3cret", Open: true, Metrics: http.NotFoundHandler()})
	for _, path := range []string{"/", "/events", "/metrics", "/?token=wrong", "/events?token=s3cret"} {
		if got := get(guarded, path, "p4lb.example"); got.StatusCode != 401 {
			t.Errorf("%s without the token: %s", path, got.Status)
		}
	}
	welcome := get(guarded, "/?token=s3cret", "p4lb.example")
	if welcome.StatusCode != 303 || len(welcome.Cookies()) != 1 || !welcome.Cookies()[0].HttpOnly {
		t.Fatalf("with the token: %s, cookies %v", welcome.Status, welcome.Cookies())
	}
	if got := get(guarded, "/", "p4lb.example", "Cookie", welcome.Cookies()[0].String()); got.StatusCode != 200 {
		t.Errorf("with the cookie: %s", got.Status)
	}
	if got := get(guarded, "/metrics", "p4lb.example", "Authorization", "Bearer s3cret"); got.StatusCode != 404 {
		t.Errorf("as a bearer: %s", got.Status)
	}
	page := get(here, "/", "localhost")
	text, err := io.ReadAll(page.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"http://", "https://", "/*JS*/", "/*CSS*/"} {
		if i := strings.Index(strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""), wrong); i >= 0 {
			t.Errorf("the page has %q in it", wrong)
		}
	}
	if rule := page.Header.Get("Content-Security-Policy"); !strings.HasPrefix(rule, "default-src 'none'; connect-src 'self';") {
		t.Errorf("the rule is %q", rule)
	}
	post := httptest.NewRecorder()
	here.ServeHTTP(post, httptest.NewRequest("POST", "http://localhost/", nil))
	if post.Code != 405 {
		t.Errorf("a POST: %d", post.Code)
	}
}

func TestGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Token: "secret", Open: true})
		ask := func(from, token string) int {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/?token="+token, nil)
			r.RemoteAddr = from
			s.ServeHTTP(w, r)
			return w.Code
		}
		for i := range 2 * maxGuesses {
			want := http.StatusUnauthorized
			if i >= maxGuesses {
				want = http.StatusTooManyRequests
			}
			if got := ask(fmt.Sprintf("10.0.0.1:%d", i+1), fmt.Sprint(i)); got != want {
				t.Fatalf("guess %d: %d, want %d", i, got, want)
			}
		}
		for from, want := range map[string]int{"10.0.0.1:1": http.StatusTooManyRequests, "10.0.0.2:1": http.StatusSeeOther, "[::1]:1": http.StatusSeeOther} {
			if got := ask(from, "secret"); got != want {
				t.Errorf("the token from %s: %d, want %d", from, got, want)
			}
		}
		time.Sleep(time.Minute + 1)
		if got := ask("10.0.0.1:1", "secret"); got != http.StatusSeeOther {
			t.Errorf("after a minute: %d", got)
		}
		for i := range 2 * maxPlaces {
			ask(fmt.Sprintf("[2001:db8:0:%x::1]:1", i), "x")
		}
		if n := len(s.guesses.wrong); n > maxPlaces {
			t.Errorf("%d places are kept in mind", n)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != http.StatusUnauthorized || len(s.guesses.wrong) > maxPlaces {
			t.Errorf("without a token: %d", w.Code)
		}
	})
}

// TestEvents gives one port all kinds of changes.
func TestEvents(t *testing.T) {
	var w watcher
	at := time.Duration(0)
	look := func(quantity string, x float64) []Event {
		at += time.Second
		return w.look(&live.Frame{Time: at, Switches: []live.Switch{{Name: "s1", Values: []live.Value{
			{Register: quantity, Port: 3, Peer: "l1", Number: x, Text: fmt.Sprint(x)},
		}}}})
	}
	for i, c := range []struct {
		quantity string
		x        float64
		want     string
		good     bool
	}{
		{live.PortDown, 0, "", false},
		{live.PortDown, 1, "the link is down", false},
		{live.PortDown, 1, "", false},
		{live.PortDown, 0, "the link is up again", true},
		{live.PortLoad, 0.99, "", false},
		{live.PortLoad, 0.9, "", false}, // only for a moment
		{live.PortLoad, 0.99, "", false},
		{live.PortLoad, 0.99, "", false},
		{live.PortLoad, 0.99, "", false},
		{live.PortLoad, 0.97, "sends at 97 % of its rate", false},
		{live.PortLoad, 0.9, "", false},
		{live.PortLoad, 0.7, "sends below 80 % of its rate again", true},
		{live.PortFill, 1, "", false},
		{live.PortFill, 1, "", false},
		{live.PortFill, 1, "", false},
		{live.PortFill, 1, "the queue is 100 % full", false},
		{live.PortFill, 0, "the queue is half empty again", true},
		{live.PortDrops, 5, "", false}, // drops before the first frame
		{live.PortDrops, 7, "drops packets: 7", false},
		{live.PortDrops, 9, "", false},
		{live.PortDrops, 9, "", false},
		{live.PortDrops, 9, "", false},
		{live.PortDrops, 9, "has stopped dropping packets", true},
	} {
		got := look(c.quantity, c.x)
		switch {
		case c.want == "" && len(got) == 0:
		case c.want == "" || len(got) != 1 || got[0].Text != c.want || got[0].Good != c.good || got[0].Port != 3 || got[0].At != at.Microseconds():
			t.Errorf("step %d, %s %v: %+v, want %q", i, c.quantity, c.x, got, c.want)
		}
	}
}
