package web

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/ui/browser"
	"github.com/p4lb/p4lb/internal/ui/live"
)

// aFabric has four switches, two of them leaves with hosts, and two links
// between each pair.
func aFabric() *Fabric {
	f := &Fabric{Name: "four"}
	for _, leaf := range []string{"l1", "l2"} {
		f.Nodes = append(f.Nodes, Node{leaf, 1, "leaf"})
		for h := range 16 {
			host := fmt.Sprintf("h%d-%s", h+1, leaf)
			f.Nodes = append(f.Nodes, Node{Name: host})
			f.Links = append(f.Links, Link{host, 0, leaf, h + 1, 100e6})
		}
	}
	for s, spine := range []string{"s1", "s2"} {
		f.Nodes = append(f.Nodes, Node{spine, 2, "spine"})
		for l, leaf := range []string{"l1", "l2"} {
			for k := range 2 {
				f.Links = append(f.Links, Link{leaf, 17 + 2*s + k, spine, 1 + 2*l + k, 100e6})
			}
		}
	}
	return f
}

// aBusyFrame is the frame number n: load in waves, a queue that fills, and from
// frame 10 on a failed link and a port with drops.
func aBusyFrame(f *Fabric, n int) *live.Frame {
	frame := &live.Frame{Scheme: "qall-poly3", Fabric: f.Name, Time: time.Duration(n) * 500 * time.Millisecond, Wall: time.UnixMilli(1_700_000_000_000 + int64(n)*500)}
	for _, node := range f.Nodes {
		if node.Tier == 0 {
			continue
		}
		sw := live.Switch{Name: node.Name, Role: node.Role, Clock: frame.Time}
		add := func(register string, port int, peer string, x float64, unit, text, meaning string) {
			sw.Values = append(sw.Values, live.Value{Register: register, Index: fmt.Sprint("port ", port), Port: port, Peer: peer, Number: x, Unit: unit, Text: text, Meaning: meaning})
		}
		for _, l := range f.Links {
			port, peer := l.APort, l.B
			if l.A != node.Name {
				port, peer = l.BPort, l.A
			}
			if l.A != node.Name && l.B != node.Name {
				continue
			}
			load := 0.5 + 0.49*math.Sin(float64(n)/4+float64(port)*1.7+float64(len(sw.Values)))
			down, drops := 0.0, 0.0
			if n >= 10 && port == 19 && node.Name == "l1" {
				down, load = 1, 0
			}
			if n >= 10 && node.Name == "s1" && port == 2 {
				drops = float64(n-9) * 12
			}
			queue := math.Round(64 * load * load)
			add(live.PortOutRate, port, peer, load*l.Rate, "bit/s", "", "")
			add(live.PortInRate, port, peer, (1-load)*l.Rate, "bit/s", "", "")
			add(live.PortOutPackets, port, peer, float64(n)*1000*load, "packets", "", "")
			add(live.PortOutBytes, port, peer, float64(n)*1.5e6, "bytes", "", "")
			add(live.PortInBytes, port, peer, float64(n)*1.2e6, "bytes", "", "")
			add(live.PortLoad, port, peer, load, "share", "", "")
			add(live.PortQueue, port, peer, queue, "packets", "", "")
			add(live.PortFill, port, peer, queue/64, "share", "", "")
			add(live.PortDrops, port, peer, drops, "packets", fmt.Sprintf("%.0f: queue full %.0f", drops, drops), "")
			add(live.PortDown, port, peer, down, "", map[float64]string{0: "up", 1: "down"}[down], "")
			if peer[0] != 'h' {
				add("q_L", port, peer, load, "occupancy", "", "share of the queue that is taken")
				add("q_V", port, peer, 1+math.Round(load), "trend", map[float64]string{1: "falling", 2: "rising"}[1+math.Round(load)], "whether the queue grows")
			}
		}
		if node.Tier == 1 {
			for k := range 4 {
				share := 0.25 + 0.2*math.Sin(float64(n)/6+float64(k)*math.Pi/2)
				sw.Values = append(sw.Values, live.Value{Register: "share", Index: fmt.Sprint("leaf 2 path ", k+1), Port: 17 + k, Peer: fmt.Sprint("s", 1+k/2), Group: 2, Path: k + 1,
					Number: share, Unit: "share", Meaning: "how much of the group's traffic the path is to get"})
			}
		}
		frame.Switches = append(frame.Switches, sw)
	}
	return frame
}

// TestPage checks the page in a browser: the drawing, live and paused, and no
// errors.
func TestPage(t *testing.T) {
	b := browser.New(t)
	fabric := aFabric()
	s := New(Options{Fabric: fabric})
	h := serve(t, s)
	b.Show(h.URL, 1400, "light")
	b.Until(`document.querySelector("#state")?.textContent === "waiting for the switches"`)
	quiet := aBusyFrame(fabric, 0)
	for i := range quiet.Switches {
		for j := range quiet.Switches[i].Values {
			quiet.Switches[i].Values[j].Number = 0
		}
	}
	s.Show(quiet)
	b.Until(`document.querySelector("#hint").textContent === "no traffic since deployment"`)
	for n := range 30 {
		s.Show(aBusyFrame(fabric, n+1))
	}
	b.Until(`document.querySelector("#history").max === "30"`)
	for expression, want := range map[string]any{
		`document.title`: "qall-poly3 on four",
		`document.querySelectorAll("#drawing .node").length`:                                                                            4.0,
		`document.querySelectorAll("#drawing circle").length`:                                                                           32.0,
		`document.querySelectorAll("#drawing path").length`:                                                                             16.0,
		`document.querySelectorAll("#drawing path.down").length`:                                                                        1.0,
		`document.querySelectorAll("#ports tbody tr").length`:                                                                           20.0,
		`document.querySelectorAll("#paths .bar").length`:                                                                               4.0,
		`document.querySelectorAll("#hint").textContent || ""`:                                                                          "",
		`document.querySelector("#state").textContent.slice(0,5)`:                                                                       "live,",
		`[...document.querySelectorAll("#events li")].some(e => e.textContent.includes("l1 port 19: the link is down"))`:                true,
		`[...document.querySelectorAll("#events li")].some(e => e.textContent.includes("s1 port 2: drops packets: 12: queue full 12"))`: true,
		`[...document.querySelectorAll("#registers h3")].some(e => e.textContent === "q_L share of the queue that is taken")`:           true,
		`[...document.querySelectorAll("#registers span")].some(e => e.textContent === "rising" || e.textContent === "falling")`:        true,
		`document.documentElement.scrollWidth <= innerWidth`:                                                                            true,
	} {
		if got := b.Eval(expression); got != want {
			t.Errorf("%s is %v, want %v", expression, got, want)
		}
	}
	// A paused page stays at its frame, and a live page shows the latest.
	b.Eval(`document.querySelector("#pause").click()`)
	b.Until(`document.querySelector("#state").textContent.startsWith("paused,")`)
	before := b.Eval(`document.querySelector("#ports").textContent`)
	s.Show(aBusyFrame(fabric, 31))
	b.Until(`document.querySelector("#history").max === "31"`)
	if after := b.Eval(`document.querySelector("#ports").textContent`); after != before {
		t.Error("a paused page goes on")
	}
	b.Eval(`(() => { const h = document.querySelector("#history"); h.value = 5; h.dispatchEvent(new Event("input")); })()`)
	b.Until(`document.querySelectorAll("#drawing path.down").length === 0`) // the link was up at that frame
	b.Eval(`document.querySelector("#pause").click()`)
	b.Until(`document.querySelector("#state").textContent.startsWith("live,")`)
	// A click selects another switch.
	b.Eval(`document.querySelectorAll("#drawing .node")[0].dispatchEvent(new MouseEvent("click", {bubbles: true}))`)
	b.Until(`document.querySelector("#ports-head").textContent === "Ports of s1"`)
	if got := b.Eval(`document.querySelector("#ports").textContent.includes("queue full")`); got != true {
		t.Error("the reasons of drops are not shown")
	}
	b.Eval(`document.querySelector("#theme").click()`)
	if got := b.Eval(`document.documentElement.dataset.theme`); got != "dark" {
		t.Errorf("the theme is %v", got)
	}
	// A switch without answer, and the end of the frames.
	gone := aBusyFrame(fabric, 32)
	for i := range gone.Switches {
		if gone.Switches[i].Name == "s1" {
			gone.Switches[i] = live.Switch{Name: "s1", Err: "connection refused"}
		}
	}
	s.Show(gone)
	b.Until(`document.querySelector("#ports").textContent === "no answer: connection refused"`)
	s.End()
	b.Until(`document.querySelector("#state").textContent.startsWith("ended,")`)
	b.Quiet()
}

// TestPageWidths opens the page on a phone and on larger screens, light and
// dark. No element may be wider than the window.
func TestPageWidths(t *testing.T) {
	b := browser.New(t)
	fabric := aFabric()
	s := New(Options{Fabric: fabric})
	h := serve(t, s)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{390, 800, 1400} {
			b.Show(h.URL, width, scheme)
			b.Until(`/^(waiting|live)/.test(document.querySelector("#state")?.textContent)`)
			for n := range 40 {
				s.Show(aBusyFrame(fabric, n))
			}
			b.Until(`document.querySelectorAll("#ports tbody tr").length === 20`)
			if got := b.Eval(`document.documentElement.scrollWidth`); got != float64(width) {
				t.Errorf("at %d the page is %v wide", width, got)
			}
			if got := b.Eval(`document.documentElement.dataset.theme`); got != scheme {
				t.Errorf("the theme is %v, want %s", got, scheme)
			}
			b.Shoot(fmt.Sprintf("page-%d-%s", width, scheme))
		}
	}
	b.Quiet()
}
