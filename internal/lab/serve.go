//go:build !js

package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/p4app"
	"github.com/p4lb/p4lb/internal/p4/describe"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/server/gate"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/server/thrift"
	"github.com/p4lb/p4lb/internal/sim"
)

// check completes the options for an experiment.
func (o *Serve) check(jobs []*Job) error {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		return fmt.Errorf("serving %q: want an address with a port, such as 127.0.0.1:9558", o.Address)
	}
	at, err := netip.ParseAddr(host)
	if host == "localhost" {
		at, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
		o.Address = net.JoinHostPort(at.String(), port)
	}
	if err != nil || !at.IsLoopback() {
		return fmt.Errorf("serving %s: controllers need no password: want an address of this machine alone, such as 127.0.0.1:%s", o.Address, port)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("serving %s: port %q: want a number up to 65535", o.Address, port)
	} else if most := 65535 - 2*len(jobs[0].setup.topo.Switches); int(n) > most {
		return fmt.Errorf("serving %s: the %d switches have the ports after %d, for P4Runtime and for Thrift: want at most %d", o.Address, len(jobs[0].setup.topo.Switches), n, most)
	}
	switch {
	case o.Every <= 0:
		return fmt.Errorf("serving every %v: want a time above 0", o.Every)
	case o.Wait < 0:
		return fmt.Errorf("serving for %d controllers: want 1 or more, or 0 for real time", o.Wait)
	case !(o.Slow >= 0) || o.Timeout < 0:
		return fmt.Errorf("serving %g times slower than real time, with a timeout of %v: want numbers above 0", o.Slow, o.Timeout)
	}
	o.Slow = cmp.Or(o.Slow, 1)
	o.Timeout = cmp.Or(o.Timeout, time.Second)
	o.Start = cmp.Or(o.Start, time.Minute)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	o.row = jobs[0].Scheme.Label
	for _, j := range jobs {
		if j.Scheme.Label != o.row {
			continue
		}
		switch {
		case j.Scheme.Engine == spec.EngineNative:
			return fmt.Errorf("%s: a controller drives programs: want engine p4, not %s", o.row, spec.EngineNative)
		case j.world != "":
			return fmt.Errorf("%s: serving is for virtual time: in world %s use p4lb deploy", o.row, j.world)
		}
		j.serve, j.deploy = o, deployServed
	}
	return nil
}

// A served network has a P4Runtime server and, for v1model, a Thrift server for each
// switch. p4lb deploys the plan; from the first moment on the switches belong to the
// controllers.
//
// The clock stands while open is set. Calls are processed only then, so that their
// effects have a definite virtual time; packet-outs take effect at the end of the moment.
type served struct {
	o      *Serve
	r      *running
	target *embedded.Target
	at     []servedSwitch
	nodes  map[string]*servedNode
	listen []net.Listener // of the page, then of P4Runtime, then of Thrift
	thrift []*thrift.Server
	page   *http.Server
	ready  bool // the plan is deployed
	work   sync.WaitGroup
	now    atomic.Int64 // virtual time of the moment
	began  time.Time    // of real time, when virtual time began

	loading  sync.Mutex // switches start programs one after the other
	mu       sync.Mutex
	changed  chan struct{} // is closed at each change of the fields below
	open     bool
	opened   time.Time // the begin of the moment
	moments  int
	ended    bool
	active   map[*servedCall]bool
	heard    time.Time // the last sign of life of a controller
	called   time.Time // the end of the last call
	queued   int       // calls that wait for the clock to stand
	callers  map[string]*caller
	sessions map[string]bool // streams, by client and switch
	frames   []servedFrame
	refused  int
	calls    int
	first    string // refusal
	logged   int
}

// A servedSwitch describes a switch to controllers.
type servedSwitch struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Address string `json:"address"`
	Thrift  string `json:"thrift,omitempty"`
	Device  uint64 `json:"device_id"`
	CPUPort int    `json:"cpu_port"`
	P4Info  string `json:"p4info"`
	Program string `json:"program"`
	plan    *plan.Switch
}

// A servedCall is a call in progress.
type servedCall struct {
	p4rt.SimCall
	sw    string
	began time.Time
}

// A caller is a controller that calls /next.
type caller struct {
	waits bool // for the next moment
	left  bool // it has called /done
	gone  bool // its connection broke while it waited
}

type servedFrame struct {
	sw    *sim.Switch
	frame []byte
}

// deployServed deploys the plan and opens the servers.
func deployServed(ctx context.Context, r *running) (_ deployment, err error) {
	o := r.Job.serve
	o.mu.Lock()
	d := &served{o: o, r: r, changed: make(chan struct{}), open: true, active: map[*servedCall]bool{}, callers: map[string]*caller{}, sessions: map[string]bool{}, nodes: map[string]*servedNode{}}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	page, err := d.bind()
	if err != nil {
		return nil, err
	}
	chance := r.newChance()
	d.target = embedded.New(embedded.Options{
		Memory: true, Still: true, Seed: r.Seed, Load: chance.load, Priorities: r.planned.Queues(),
		Simulator: func(name string) p4rt.Simulator {
			d.nodes[name] = &servedNode{d, r.planned.Switch(name), r.net.Switch(name), chance}
			return d.nodes[name]
		},
	})
	ctl, err := controller.New(ctx, r.planned, d.target, controller.DeployOptions{})
	if err != nil {
		return nil, err
	}
	err = apply(ctx, ctl)
	ctl.Close()
	if err != nil {
		return nil, err
	}
	if err := d.vacate(ctx); err != nil {
		return nil, err
	}
	for _, s := range r.planned.Switches {
		dev := d.target.Device(s.Name)
		r.net.Switch(s.Name).OnPacketIn(func(_ int, frame []byte) { dev.PacketIn(frame) })
		for _, p := range r.net.Switch(s.Name).Ports() {
			dev.SetPortUp(uint32(p.Number), !p.Link().Down())
		}
	}
	d.mu.Lock()
	d.ready, d.open = true, false
	d.mu.Unlock()
	d.start(page)
	return d, nil
}

// vacate waits until p4lb's controller has left the switches, so that the first controller
// of the user becomes primary with any election id.
func (d *served) vacate(ctx context.Context) error {
	const most = 10 * time.Second
	since := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wait(ctx, 0, func(time.Duration) (bool, time.Duration, error) {
		if left := most - time.Since(since); left > 0 || len(d.sessions) == 0 {
			return len(d.sessions) == 0, left, nil
		}
		return false, 0, fmt.Errorf("the deployment's streams to %d switches have not ended within %v", len(d.sessions), most)
	})
}

// bind opens the listeners of the page, which it returns, and of the switches.
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
		d.at = append(d.at, servedSwitch{
			Name: s.Name, Role: role, Address: address, Device: s.Device, CPUPort: s.CPUPort,
			P4Info: "http://" + page.Addr().String() + "/" + role + ".p4info.txtpb", Program: "http://" + page.Addr().String() + "/" + role + ".json", plan: s,
		})
	}
	for i, s := range d.r.planned.Switches {
		if s.Pipeline.Manifest.Arch != manifest.V1Model {
			continue // Thrift is the interface of simple_switch
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
		pattern, pipeline := "GET /"+s.Role, s.plan.Pipeline
		mux.HandleFunc(pattern+".p4info.txtpb", func(w http.ResponseWriter, _ *http.Request) { w.Write(describe.Text(pipeline.P4Info)) })
		mux.HandleFunc(pattern+".json", func(w http.ResponseWriter, _ *http.Request) { w.Write(pipeline.Config) })
	}
	const head = 10 * time.Second
	d.page = &http.Server{Handler: mux, ReadHeaderTimeout: head, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	d.work.Go(func() { d.page.Serve(gate.Bound(page, 256, false, slog.New(slog.DiscardHandler))) })
	d.o.Log(fmt.Sprintf("serving %s: http://%s lists the switches", d.r.Name(), page.Addr()))
	for i, s := range d.at {
		server, l := d.target.Server(s.Name), d.listen[1+i]
		d.work.Go(func() { server.Serve(l) })
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
		server.Simulate(thriftTurns{n})
		d.thrift = append(d.thrift, server)
		d.work.Go(func() { server.Serve(l) })
		d.o.Log(fmt.Sprintf("  %s: Thrift at %s", s.Name, s.Thrift))
	}
}

// begin plans the moments, before anything else happens at time 0.
func (d *served) begin(ctx context.Context) {
	var turn func()
	turn = func() {
		if err := d.moment(ctx, d.r.net.Now()); err != nil {
			d.r.fail(err)
			return
		}
		d.r.net.At(d.r.net.Now()+d.o.Every, turn)
	}
	d.r.net.At(0, turn)
}

// notify wakes all waiters. The caller holds d.mu.
func (d *served) notify() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// moment lets the clock stand until the controllers are ready.
func (d *served) moment(ctx context.Context, now time.Duration) error {
	d.now.Store(int64(now))
	d.mu.Lock()
	d.open, d.opened, d.heard = true, time.Now(), time.Now()
	d.moments++
	if d.moments > 1 { // a call before the first moment is for the first moment
		for _, c := range d.callers {
			c.waits = false
		}
	}
	d.notify()
	err := d.wait(ctx, now, d.settled)
	if err == nil {
		d.open = false
		err = d.wait(ctx, now, d.quiet)
	}
	frames := d.frames
	d.frames = nil
	d.mu.Unlock()
	for _, f := range frames {
		f.sw.PacketOut(f.frame)
	}
	return err
}

// wait blocks until a condition is true, or returns the reason why it cannot become
// true. The caller holds d.mu.
func (d *served) wait(ctx context.Context, now time.Duration, until func(now time.Duration) (ok bool, again time.Duration, err error)) error {
	for {
		ok, again, err := until(now)
		if ok || err != nil {
			return err
		}
		changed := d.changed
		d.mu.Unlock()
		timer := time.NewTimer(again)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		d.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// settled reports whether the clock may go on, or when to ask again. It returns an error
// that names a controller if that does not answer.
func (d *served) settled(now time.Duration) (ok bool, again time.Duration, err error) {
	first := d.moments == 1
	if d.o.Wait == 0 {
		if first && d.began.IsZero() {
			if len(d.sessions) == 0 {
				return d.awaited("controller has opened a stream to a switch")
			}
			d.began = time.Now()
		}
		left := time.Until(d.began.Add(time.Duration(float64(now) * d.o.Slow)))
		if busy := linger - time.Since(d.called); left <= 0 && time.Since(d.opened) < d.o.Timeout && (busy > 0 || d.queued > 0) {
			return false, max(busy, linger/4), nil
		}
		return left <= 0, left, nil
	}
	ready := 0
	var late []string
	for name, c := range d.callers {
		switch {
		case c.gone:
			return false, 0, fmt.Errorf("controller %s has gone at %v: it closed its connection while it waited for /next", name, now)
		case c.waits, c.left:
			ready++
		default:
			late = append(late, name)
		}
	}
	switch {
	case len(late) == 0 && (ready >= d.o.Wait || !first):
		return true, 0, nil
	case first && ready+len(late) < d.o.Wait:
		return d.awaited(fmt.Sprintf("more than %d of %d controllers have called http://%s/next", ready+len(late), d.o.Wait, d.listen[0].Addr()))
	}
	if left := d.o.Timeout - time.Since(d.heard); left > 0 || d.working() {
		return false, max(left, d.o.Timeout/4), nil
	}
	slices.Sort(late)
	return false, 0, fmt.Errorf("controller %s has not answered for %v at %v: want a call of http://%s/next?name=%s, or of /done at its end",
		strings.Join(late, ", "), d.o.Timeout, now, d.listen[0].Addr(), late[0])
}

// linger is how long a moment waits for the next request of a busy controller if virtual
// time is behind real time.
const linger = 2 * time.Millisecond

// awaited is the wait for controllers at the first moment.
func (d *served) awaited(what string) (bool, time.Duration, error) {
	left := d.o.Start - time.Since(d.heard)
	if left > 0 {
		return false, left, nil
	}
	return false, 0, fmt.Errorf("no %s within %v", what, d.o.Start)
}

// working reports whether the server processes a call and does not wait for its client.
func (d *served) working() bool {
	for c := range d.active {
		if !c.Stream {
			return true
		}
	}
	return false
}

// quiet reports whether no call is in progress. It names a client that does not take in
// an answer.
func (d *served) quiet(now time.Duration) (ok bool, again time.Duration, err error) {
	again = d.o.Timeout
	for c := range d.active {
		left := d.o.Timeout - time.Since(c.began)
		if c.Stream && left <= 0 {
			return false, 0, fmt.Errorf("the controller at %s does not take in the answer to its %s to %s at %v: no end within %v", c.Client, c.Method, c.sw, now, d.o.Timeout)
		}
		again = max(min(again, left), time.Millisecond)
	}
	return len(d.active) == 0, again, nil
}

// next is the call of a controller that has finished a moment. It returns at the next one.
func (d *served) next(w http.ResponseWriter, req *http.Request) {
	name := cmp.Or(req.URL.Query().Get("name"), "1")
	d.mu.Lock()
	c := d.callers[name]
	switch {
	case d.ended:
		d.mu.Unlock()
		d.answer(w, true)
		return
	case c == nil && (len(name) > 64 || len(d.callers) >= 1024):
		d.mu.Unlock()
		http.Error(w, "want a name of up to 64 bytes and at most 1024 controllers", http.StatusBadRequest)
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

// done is the call of a controller that leaves the switches as they are.
func (d *served) done(w http.ResponseWriter, req *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := cmp.Or(req.URL.Query().Get("name"), "1")
	if d.callers[name] == nil && (len(name) > 64 || len(d.callers) >= 1024) {
		http.Error(w, "want a name of up to 64 bytes and at most 1024 controllers", http.StatusBadRequest)
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

// topology answers with the topology in a form of p4-utils, with the addresses of the
// servers.
func (d *served) topology(w http.ResponseWriter, form func(*fabric.Topology, map[string]int) ([]byte, error)) {
	topo, cpu := *d.r.topo, map[string]int{}
	topo.Switches = slices.Clone(topo.Switches)
	for _, s := range d.at {
		cpu[s.Name] = s.CPUPort
		to := topo.Switch(s.Name)
		to.GRPC, to.Thrift = s.Address, s.Thrift
	}
	text, err := form(&topo, cpu)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

// log passes the first lines on.
func (d *served) log(format string, args ...any) {
	const most = 20
	if d.logged++; d.logged <= most {
		d.o.Log(fmt.Sprintf(format, args...))
	}
}

// setLinks reports the state of links to the switches at their ends.
func (d *served) setLinks(links []int, up bool) {
	for _, l := range links {
		link := d.r.topo.Links[l]
		for _, p := range []struct {
			node string
			port int
		}{{link.A.Node, link.A.Port}, {link.B.Node, link.B.Port}} {
			if dev := d.target.Device(p.node); dev != nil {
				dev.SetPortUp(uint32(p.port), up)
			}
		}
	}
}

// change leaves the switches to the controllers.
func (d *served) change(context.Context, *plan.Plan) error { return nil }

// finish ends the moments and adds the actions of the controllers to the alerts.
func (d *served) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.notify()
	text := fmt.Sprintf("own controllers drove the switches: %d requests", d.calls)
	if d.refused > 0 {
		text += fmt.Sprintf(", %d rejected, first %s", d.refused, d.first)
	}
	d.r.alerts = append(d.r.alerts, text)
}

func (d *served) close() {
	d.mu.Lock()
	d.ended, d.open = true, false
	d.notify()
	d.mu.Unlock()
	if d.page != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if d.page.Shutdown(ctx) != nil {
			d.page.Close()
		}
		cancel()
	}
	for _, s := range d.thrift {
		s.Close()
	}
	if d.target != nil {
		d.target.Close()
	}
	for _, l := range d.listen {
		l.Close()
	}
	d.work.Wait()
	d.o.mu.Unlock()
}

// errEnded is the answer to calls after the end of a run.
var errEnded = errors.New("the run has ended")

// A servedNode is the simulator of one switch.
type servedNode struct {
	*served
	plan   *plan.Switch
	sw     *sim.Switch
	chance *chance
}

var _ p4rt.Simulator = (*servedNode)(nil)

// Now returns the time of the last moment.
func (n *servedNode) Now() time.Duration { return time.Duration(n.now.Load()) }

// Run makes the simulated switch run a program. The clock stands.
func (n *servedNode) Run(sw *dataplane.Switch) {
	n.loading.Lock()
	defer n.loading.Unlock()
	n.chance.seed(sw, sim.Random(n.r.Seed, n.sw.Name))
	n.r.load(n.plan, sw)
}

// PacketOut keeps a frame until the end of the moment.
func (n *servedNode) PacketOut(frame []byte) {
	const most = 1 << 14
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.frames) < most {
		n.frames = append(n.frames, servedFrame{n.sw, slices.Clone(frame)})
	}
	n.heard = time.Now()
}

// Turn waits for the clock to stand.
func (n *servedNode) Turn(ctx context.Context, c p4rt.SimCall) (func(error), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queued++
	defer func() { n.queued-- }()
	for !n.open && !n.ended {
		changed := n.changed
		n.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		n.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if n.ended {
		return nil, errEnded
	}
	call := &servedCall{c, n.sw.Name, time.Now()}
	n.active[call] = true
	n.heard = call.began
	return func(err error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.active, call)
		n.heard, n.called = time.Now(), time.Now()
		if n.ready {
			n.calls++
			if err != nil {
				n.reject(fmt.Sprintf("%s of %s to %s", c.Method, c.Client, n.sw.Name), err)
			}
		}
		n.notify()
	}, nil
}

// reject notes a rejected request. The caller holds n.mu.
func (n *servedNode) reject(what string, err error) {
	text := fmt.Sprintf("%s at %v: %v", what, n.Now(), err)
	if n.refused++; n.refused == 1 {
		n.first = text
	}
	n.log("rejected: %s", text)
}

// Refused notes a rejected message.
func (n *servedNode) Refused(client string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reject(fmt.Sprintf("message of %s to %s", client, n.sw.Name), err)
}

// Session notes that a controller has come or gone.
func (n *servedNode) Session(client string, open bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := client + " " + n.sw.Name
	switch {
	case open:
		n.sessions[key] = true
		n.heard = time.Now()
	case n.sessions[key]:
		if delete(n.sessions, key); n.ready && !n.ended && n.o.Wait == 0 && len(n.sessions) == 0 {
			n.log("no controller is left at %v: the one at %s has closed its stream to %s", n.Now(), client, n.sw.Name)
		}
	}
	n.notify()
}

// A thriftNode is the target of a Thrift server. The simulator has the queues and counts
// the packets of ports.
type thriftNode struct {
	*p4rt.Device
	node *servedNode
}

var errQueue = errors.New("the topology defines the rates and depths of queues in virtual time")

// SetQueueDepth fails: the topology defines queues.
func (*thriftNode) SetQueueDepth(int, int, int) error { return errQueue }

// SetQueueRate fails: the topology defines queues.
func (*thriftNode) SetQueueRate(int, int, uint64) error { return errQueue }

// PortCounts returns the packets at each simulated port.
func (t *thriftNode) PortCounts() []bmv2.PortCounts {
	list, _ := (&simRegisters{sw: t.node.sw}).PortCounts(context.Background()) // never fails
	return list
}

// Ports lists the ports with the names that p4-utils gives them.
func (t *thriftNode) Ports() (list []thrift.PortInfo) {
	for _, p := range t.node.sw.Ports() {
		list = append(list, thrift.PortInfo{Number: uint32(p.Number), Name: fmt.Sprintf("%s-eth%d", t.node.sw.Name, p.Number), Up: !p.Link().Down()})
	}
	return list
}

// Connect fails: the topology defines ports.
func (*thriftNode) Connect(uint32, string) error { return errPorts }

// Disconnect fails: the topology defines ports.
func (*thriftNode) Disconnect(uint32) error { return errPorts }

var errPorts = errors.New("the topology defines ports")

// thriftTurns lets a Thrift server wait for the clock to stand.
type thriftTurns struct{ *servedNode }

// Turn waits for the clock to stand.
func (n thriftTurns) Turn(ctx context.Context, client, method string) (func(error), error) {
	return n.servedNode.Turn(ctx, p4rt.SimCall{Client: client, Method: method})
}
