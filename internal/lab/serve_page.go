//go:build !js

package lab

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/p4app"
	"github.com/p4lb/p4lb/internal/p4/describe"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/server/gate"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

// bind opens the listeners of the switches and of the page, and returns the page's.
func (d *served) bind() (page net.Listener, err error) {
	if page, err = net.Listen("tcp", d.o.Address); err != nil {
		return nil, fmt.Errorf("serving the list of switches: %w", err)
	}
	d.listen = append(d.listen, page)
	at := page.Addr().(*net.TCPAddr)
	_, port, _ := net.SplitHostPort(d.o.Address)
	listen := func(s *plan.Switch) (address string, err error) {
		next := net.TCPAddr{IP: at.IP, Port: at.Port + len(d.listen)}
		if port == "0" {
			next.Port = 0
		}
		l, err := net.Listen("tcp", next.String())
		if err != nil {
			return "", fmt.Errorf("serving switch %s: %w", s.Name, err)
		}
		d.listen = append(d.listen, l)
		return l.Addr().String(), nil
	}
	for _, s := range d.r.planned.Switches {
		address, err := listen(s)
		if err != nil {
			return nil, err
		}
		role := string(s.Role)
		url := "http://" + page.Addr().String() + "/" + role
		to := servedSwitch{
			Name: s.Name, Role: role, Address: address, Device: s.Device, CPUPort: s.CPUPort,
			P4Info: url + ".p4info.txtpb", Program: url + ".json", plan: s,
		}
		if d.o.BfRt { // a BfRt server has one switch, so its device number is 0
			to.Address, to.BfRt, to.Device = "", address, 0
			to.Schema, to.P4Name = url+".bf-rt.json", d.programs[role].name
		}
		d.at = append(d.at, to)
	}
	for i, s := range d.r.planned.Switches {
		if s.Pipeline.Manifest.Arch != manifest.V1Model {
			continue // the Thrift interface is for simple_switch only
		}
		if d.at[i].Thrift, err = listen(s); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// start serves the page and the switches.
func (d *served) start(page net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { d.list(w) })
	mux.HandleFunc("GET /next", d.next)
	mux.HandleFunc("GET /done", d.done)
	mux.HandleFunc("GET /topology.json", func(w http.ResponseWriter, _ *http.Request) { d.topology(w, p4app.Graph) })
	mux.HandleFunc("GET /topology.db", func(w http.ResponseWriter, _ *http.Request) { d.topology(w, p4app.Database) })
	known := map[string]bool{}
	for _, s := range d.at {
		if known[s.Role] {
			continue
		}
		known[s.Role] = true
		pattern, info, program := "GET /"+s.Role, s.plan.Pipeline.P4Info, d.programs[s.Role]
		mux.HandleFunc(pattern+".p4info.txtpb", func(w http.ResponseWriter, _ *http.Request) { w.Write(describe.Text(info)) })
		mux.HandleFunc(pattern+".json", func(w http.ResponseWriter, _ *http.Request) { w.Write(program.config) })
		if s.Schema != "" {
			mux.HandleFunc(pattern+".bf-rt.json", func(w http.ResponseWriter, _ *http.Request) { w.Write(program.schema) })
		}
	}
	const head = 10 * time.Second
	d.page = &http.Server{Handler: mux, ReadHeaderTimeout: head, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	d.work.Go(func() { gate.ServeHTTP(d.page, page, 256) })
	d.o.Log(fmt.Sprintf("serving %s: http://%s lists the switches", d.r.Name(), page.Addr()))
	for i, s := range d.at {
		l := d.listen[1+i]
		d.work.Go(func() { d.target.Serve(s.Name, l) })
		if s.BfRt != "" {
			d.o.Log(fmt.Sprintf("  %s: BfRt at %s, device 0, program %s, schema %s", s.Name, s.BfRt, s.P4Name, s.Schema))
			continue
		}
		d.o.Log(fmt.Sprintf("  %s: P4Runtime at %s, device id %d, P4Info %s", s.Name, s.Address, s.Device, s.P4Info))
	}
	rest := d.listen[1+len(d.at):]
	for _, s := range d.at {
		if s.Thrift == "" {
			continue
		}
		l, n := rest[0], d.nodes[s.Name]
		rest = rest[1:]
		server := thrift.NewServer(&thriftNode{d.target.Device(s.Name), n}, s.Device)
		server.AllowSwap()
		server.LogTo(d.o.Warnings.With("switch", s.Name))
		server.Simulate(thriftTurns{n})
		d.thrift = append(d.thrift, server)
		d.work.Go(func() { server.Serve(l) })
		d.o.Log(fmt.Sprintf("  %s: Thrift at %s", s.Name, s.Thrift))
	}
}

// admits reports whether a new controller may have a name, which messages quote. The
// caller holds d.mu.
func (d *served) admits(name string) bool {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	return len(name) <= 64 && !strings.ContainsFunc(name, odd) && len(d.callers) < 1024
}

const wantName = "want a name of up to 64 characters of ASCII without spaces, and at most 1024 controllers"

// next handles the call of a controller that has finished a moment. It returns at
// the next moment.
func (d *served) next(w http.ResponseWriter, req *http.Request) {
	name := cmp.Or(req.URL.Query().Get("name"), "1")
	d.mu.Lock()
	c := d.callers[name]
	switch {
	case d.ended:
		d.mu.Unlock()
		d.answer(w, true)
		return
	case c == nil && !d.admits(name):
		d.mu.Unlock()
		http.Error(w, wantName, http.StatusBadRequest)
		return
	case c == nil || c.left:
		c = &caller{}
		d.callers[name] = c
	case c.waits:
		d.mu.Unlock()
		http.Error(w, fmt.Sprintf("controller %s waits already: give each controller a name of its own, as in /next?name=a", name), http.StatusConflict)
		return
	}
	c.waits = true
	d.heard = time.Now()
	moment := max(d.moments, 1)
	d.notify()
	for d.moments <= moment && !d.ended {
		changed := d.changed
		d.mu.Unlock()
		select {
		case <-changed:
			d.mu.Lock()
		case <-req.Context().Done():
			d.mu.Lock()
			if d.moments <= moment && !d.ended {
				c.gone = true
				d.notify()
			}
			d.mu.Unlock()
			return
		}
	}
	ended := d.ended
	d.mu.Unlock()
	d.answer(w, ended)
}

// done handles the call of a controller that will make no more changes.
func (d *served) done(w http.ResponseWriter, req *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := cmp.Or(req.URL.Query().Get("name"), "1")
	if d.callers[name] == nil && !d.admits(name) {
		http.Error(w, wantName, http.StatusBadRequest)
		return
	}
	d.callers[name] = &caller{left: true}
	d.heard = time.Now()
	d.notify()
	fmt.Fprintln(w, "ok")
}

// A clockReading is the answer to /next.
type clockReading struct {
	Run   string `json:"run"`
	Time  string `json:"time"`
	NS    int64  `json:"time_ns"`
	Ended bool   `json:"ended"`
}

func (d *served) answer(w http.ResponseWriter, ended bool) {
	now := time.Duration(d.now.Load())
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(clockReading{d.r.Name(), now.String(), int64(now), ended})
}

func (d *served) list(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(struct {
		Run      string         `json:"run"`
		Every    string         `json:"every"`
		Switches []servedSwitch `json:"switches"`
	}{d.r.Name(), d.o.Every.String(), d.at})
}

// topology returns the topology in the format of p4-utils, with the servers'
// addresses.
func (d *served) topology(w http.ResponseWriter, form func(*fabric.Topology, map[string]int) ([]byte, error)) {
	topo, cpu := *d.r.topo, map[string]int{}
	topo.Switches = slices.Clone(topo.Switches)
	for _, s := range d.at {
		cpu[s.Name] = s.CPUPort
		to := topo.Switch(s.Name)
		to.GRPC, to.Thrift = cmp.Or(s.Address, s.BfRt), s.Thrift
	}
	text, err := form(&topo, cpu)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}
