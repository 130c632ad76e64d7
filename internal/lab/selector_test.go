package lab

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/own"
)

// selecting is an experiment with an own program whose routes are groups of an action
// selector and whose marks are members of an action profile.
const selecting = `topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G}}
schemes: [{scheme: ./selector, label: own}]
traffic: [{workload: webserver, load-of: fabric}]
loads: [0.5]
seeds: 1
duration: 20ms
`

func selector(t *testing.T, more string) *spec.Experiment {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir+"/selector", os.DirFS("testdata/selector")); err != nil {
		t.Fatal(err)
	}
	x, err := spec.Load("experiment", []byte(selecting+more), spec.NoFiles, &scheme.Library{Sources: []scheme.Source{own.Source(dir)}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestSelector: entries of action profiles and selectors spread packets over both
// uplinks, with the same results over BfRt, over P4Runtime, and by calls to the data plane.
func TestSelector(t *testing.T) {
	direct := run(t, &Runner{}, selector(t, "")).Rows[0].Runs[0]
	if len(direct.Plots.Shares) != 2 {
		t.Errorf("shares of %v: want the two uplinks of l1", direct.Plots.Names)
	}
	for i, share := range direct.Plots.Shares {
		if strings.HasPrefix(direct.Plots.Names[i], "l") && (share < 0.2 || share > 0.8) {
			t.Errorf("%s carries %g of the bytes of its leaf", direct.Plots.Names[i], share)
		}
	}
	for _, bfrt := range []bool{true, false} {
		r, pages, _ := serving(&Serve{Every: 10 * time.Millisecond, Wait: 1, Timeout: time.Minute, BfRt: bfrt})
		var work sync.WaitGroup
		work.Go(func() {
			if text, code := get(t, <-pages+"/done"); code != http.StatusOK {
				t.Error(text)
			}
		})
		c, err := r.Run(context.Background(), selector(t, ""))
		if err != nil {
			t.Fatal(err)
		}
		work.Wait()
		if got := c.Rows[0].Runs[0]; got.Hops != direct.Hops || !maps.Equal(got.Metrics, direct.Metrics) {
			t.Errorf("bfrt %v: %d hops and %v, directly %d and %v", bfrt, got.Hops, got.Metrics, direct.Hops, direct.Metrics)
		}
	}
}

// TestSelectorChanges: entries that change leave no members behind.
func TestSelectorChanges(t *testing.T) {
	counts := map[time.Duration]string{}
	r := &Runner{Begin: func(v *View) error {
		for _, at := range []time.Duration{time.Millisecond, 3 * time.Millisecond, 8 * time.Millisecond} {
			v.Net.At(at, func() {
				var text []string
				for _, profile := range []string{"I.hops", "I.marks"} {
					list, err := v.Net.Switch("l1").Program().Profiles().Members(profile)
					if err != nil {
						t.Error(err)
					}
					text = append(text, fmt.Sprint(profile, " ", len(list)))
				}
				counts[at] = strings.Join(text, ", ")
			})
		}
		return nil
	}}
	run(t, r, selector(t, "faults: [{at: 2ms, until: 6ms, link: l1-s1, down: true}]\n"))
	// l1 reaches four hosts directly and four over two spines, and has six ports.
	for at, want := range map[time.Duration]string{time.Millisecond: "I.hops 12, I.marks 6", 3 * time.Millisecond: "I.hops 8, I.marks 6", 8 * time.Millisecond: "I.hops 12, I.marks 6"} {
		if counts[at] != want {
			t.Errorf("at %v: %s, want %s", at, counts[at], want)
		}
	}
}

// TestServeNotices: digests and idle timeouts reach a client when the clock stops, in the
// same order and with the same contents in each run.
func TestServeNotices(t *testing.T) {
	const used, ttl, sources = 38114829, 65543, 2382821652 // numbers of the schema, which p4c derives from names
	x := strings.NewReplacer("duration: 20ms", "duration: 200ms\ndrain: 1s", "loads: [0.5]", "loads: [0.02]")
	once := func() (got []string) {
		r, pages, _ := serving(&Serve{Every: 50 * time.Millisecond, Wait: 1, Timeout: time.Minute, BfRt: true})
		var work sync.WaitGroup
		work.Go(func() {
			page := <-pages
			c := newBfrtClient(t, page)
			defer c.leave()
			client := c.client("l1")
			to := &wire.TargetDevice{PipeId: wire.AllPipes, Direction: wire.AllDirections, PrsrId: wire.AllParsers}
			stream := c.subscribe("l1", &wire.Subscribe_Notifications{EnableLearnNotifications: true, EnableIdletimeoutNotifications: true})
			_, err := client.SetForwardingPipelineConfig(context.Background(), &wire.SetForwardingPipelineConfigRequest{
				ClientId: 1, Config: []*wire.ForwardingPipelineConfig{{P4Name: c.switches["l1"].P4Name}},
			})
			if err != nil {
				t.Error(err)
			}
			_, err = client.Write(context.Background(), &wire.WriteRequest{Target: to, ClientId: 1, Updates: []*wire.Update{
				{Type: wire.Update_INSERT, Entity: &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{TableId: used, Attribute: &wire.TableAttribute_IdleTable{
					IdleTable: &wire.IdleTable{Enable: true, IdleTableMode: wire.IdleTable_IDLE_TABLE_NOTIFY_MODE, TtlQueryInterval: 50, MaxTtl: 1000, MinTtl: 1},
				}}}}},
				{Type: wire.Update_INSERT, Entity: &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: &wire.TableEntry{
					TableId: used,
					Value:   &wire.TableEntry_Key{Key: &wire.TableKey{Fields: []*wire.KeyField{{FieldId: 1, MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: []byte{10, 9, 9, 9}}}}}}},
					Data:    &wire.TableData{ActionId: 21257015, Fields: []*wire.DataField{{FieldId: ttl, Value: &wire.DataField_Stream{Stream: []byte{0, 0, 0, 60}}}}},
				}}}},
			}})
			if err != nil {
				t.Error(err)
			}
			for range 3 { // at 50, 100 and 150 ms
				get(t, page+"/next")
			}
			for range 3 {
				m, err := stream.Recv()
				if err != nil {
					t.Error(err)
					break
				}
				text := m.GetIdleTimeoutNotification().GetType().String()
				if d := m.GetDigest(); d != nil {
					text = fmt.Sprint(d.GetDigestId(), " ", d.GetData())
				}
				got = append(got, text)
			}
			get(t, page+"/done")
		})
		dir := t.TempDir()
		if err := os.CopyFS(dir+"/selector", os.DirFS("testdata/selector")); err != nil {
			t.Fatal(err)
		}
		x, err := spec.Load("experiment", []byte(x.Replace(selecting)), spec.NoFiles, &scheme.Library{Sources: []scheme.Source{own.Source(dir)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Run(context.Background(), x); err != nil {
			t.Fatal(err)
		}
		work.Wait()
		return got
	}
	first, second := once(), once()
	// Every packet has a digest. The entry with 60 ms is idle at 100 ms, before the digests
	// of that moment.
	digest := fmt.Sprint(sources, " [fields:")
	if len(first) != 3 || !strings.HasPrefix(first[0], digest) || first[1] != "ENTRY_IDLE" || !strings.HasPrefix(first[2], digest) {
		t.Errorf("messages\n%.1000s", strings.Join(first, "\n"))
	}
	if strings.Join(first, "\n") != strings.Join(second, "\n") {
		t.Errorf("two runs have %d and %d messages, or others", len(first), len(second))
	}
}
