package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// incastRun makes three requests of 100,001 bytes to 5 of the 8 servers.
func incastRun(t *testing.T, seed uint64, client string) (flows []*Flow, done []time.Duration) {
	t.Helper()
	d := newDumbbell(t, 4, Options{Seed: seed})
	err := d.StartIncast(Incast{
		Client: client, Responders: 5, Bytes: 100_001, Start: time.Millisecond, Period: 10 * time.Millisecond, Requests: 3,
		Flow: FlowSpec{Transport: TCP, Done: func(f *Flow) { flows = append(flows, f) }},
		Done: func(asked time.Duration) { done = append(done, asked) },
	})
	if err != nil {
		t.Fatal(err)
	}
	d.run(t, Forever)
	return flows, done
}

// TestIncast receives the answers of all servers, and the same answers again with the
// same seed.
func TestIncast(t *testing.T) {
	for _, client := range []string{"", "h2"} {
		flows, done := incastRun(t, 1, client)
		if want := []time.Duration{1e6, 11e6, 21e6}; !slices.Equal(done, want) {
			t.Errorf("requests of %v are done, want %v", done, want)
		}
		bytes := map[time.Duration]int64{}
		servers := map[string]int{}
		for _, f := range flows {
			bytes[f.Started] += f.Bytes
			servers[fmt.Sprint(f.Started, f.From)]++
			if client != "" && f.To != client || f.Bytes != 20_000 && f.Bytes != 20_001 {
				t.Errorf("%d bytes from %s to %s", f.Bytes, f.From, f.To)
			}
		}
		if len(flows) != 15 || len(servers) != 15 || len(bytes) != 3 || bytes[1e6] != 100_001 {
			t.Errorf("%d flows from %v with %v bytes", len(flows), servers, bytes)
		}
		if a, b := incastNames(flows), incastNames(first(incastRun(t, 1, client))); a != b {
			t.Errorf("the same seed drew %s and %s", a, b)
		}
		if a, b := incastNames(flows), incastNames(first(incastRun(t, 2, client))); a == b {
			t.Errorf("another seed drew %s as well", a)
		}
	}
}

func first(flows []*Flow, _ []time.Duration) []*Flow { return flows }

func incastNames(flows []*Flow) string {
	var b strings.Builder
	for _, f := range flows {
		fmt.Fprintf(&b, "%s>%s@%v ", f.From, f.To, f.Finished)
	}
	return b.String()
}

// TestIncastRefused refuses invalid requests.
func TestIncastRefused(t *testing.T) {
	d := newDumbbell(t, 2, Options{})
	for _, c := range []struct {
		incast Incast
		want   string
	}{
		{Incast{Client: "x", Responders: 1, Bytes: 10}, `incast: there is no host "x"`},
		{Incast{Servers: []string{"h1", "y"}, Responders: 1, Bytes: 10}, `incast: there is no host "y"`},
		{Incast{Client: "h1", Responders: 4, Bytes: 10}, "incast: 4 responders: want 1 to 3"},
		{Incast{Responders: 4, Bytes: 10}, "incast: 4 responders: want 1 to 3"},
		{Incast{Responders: 3, Bytes: 2}, "incast: 2 bytes from 3 responders"},
		{Incast{Responders: 3, Bytes: 9, Requests: 2}, "incast: the times of the requests make no sense"},
		{Incast{Responders: 3, Bytes: 9, Flow: FlowSpec{Transport: 9}}, "incast: there is no transport 9"},
		{Incast{Responders: 3, Bytes: 9, Flow: FlowSpec{Tuning: &Tuning{Segment: 1500}}}, "incast: segments of 1500 bytes: the MTU has room for 1472"},
	} {
		if err := d.StartIncast(c.incast); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
