package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/cli"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/controller/inspect"
	"github.com/p4lb/p4lb/controller/plan"
	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/live"
	"github.com/p4lb/p4lb/live/web"
)

// A pageServer is where a verb serves the page that shows a network, with the
// same as metrics.
type pageServer struct {
	listen, token string
	cert, key     string

	listener net.Listener
}

func (p *pageServer) addFlags(cmd *cobra.Command, what string) {
	f := cmd.Flags()
	f.StringVar(&p.listen, "listen", "", "serve a page that shows "+what+", and metrics, at `ADDR`, such as 127.0.0.1:9464")
	f.StringVar(&p.token, "listen-token", "", "let in only who knows `TOKEN`: as /?token=TOKEN, or as a bearer")
	f.StringVar(&p.cert, "listen-cert", "", "serve it with TLS, with the certificate in `FILE`")
	f.StringVar(&p.key, "listen-key", "", "and its key in `FILE`")
}

// guarded reports whether strangers are kept out, or at least from reading along.
func (p *pageServer) guarded() bool { return p.token != "" || p.cert != "" }

// check finds mistakes in the command line.
func (p *pageServer) check(cmd *cobra.Command) error {
	switch {
	case p.listen == "" && (p.token != "" || p.cert != "" || p.key != ""):
		return cli.UsageError(cmd, "--listen-token, --listen-cert and --listen-key go with --listen")
	case (p.cert == "") != (p.key == ""):
		return cli.UsageError(cmd, "--listen-cert and --listen-key go together")
	}
	return nil
}

// stays refuses an address beyond this machine that is not guarded.
func (p *pageServer) stays() error {
	if p.guarded() || !fabric.Remote(p.listen) {
		return nil
	}
	return cli.Hinted(fmt.Errorf("--listen %s leaves this machine, where whoever reaches it would see the network", p.listen),
		"name a --listen-token, or --listen-cert and --listen-key; or serve at 127.0.0.1 and reach it through a tunnel")
}

// open takes the address, before anything else is done.
func (p *pageServer) open() (err error) {
	if p.listen == "" {
		return nil
	}
	if err := p.stays(); err != nil {
		return err
	}
	var config *tls.Config
	if p.cert != "" {
		pair, err := cli.KeyPair(p.cert, p.key)
		if err != nil {
			return err
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if p.listener, err = net.Listen("tcp", p.listen); err != nil {
		return cli.Refused("serving the page at "+p.listen, err)
	}
	if config != nil {
		p.listener = tls.NewListener(p.listener, config)
	}
	return nil
}

// serve serves the page of a fabric until ctx ends, which it does with cancel if
// that goes wrong.
func (p *pageServer) serve(ctx context.Context, c *cli.Console, t *fabric.Topology, metrics http.Handler, failed func(error)) *web.Server {
	s := web.New(web.Options{Fabric: drawn(t), Token: p.token, Open: fabric.Remote(p.listen), Metrics: metrics})
	scheme := "http"
	if p.cert != "" {
		scheme = "https"
	}
	base := scheme + "://" + p.listener.Addr().String()
	c.Log.Info("serving the page", "address", base+"/", "metrics", base+"/metrics")
	go func() {
		if err := s.Serve(ctx, p.listener); err != nil {
			failed(err)
		}
	}()
	return s
}

// drawn is a topology as the page draws it; nil where there is none.
func drawn(t *fabric.Topology) *web.Fabric {
	if t == nil {
		return nil
	}
	f := &web.Fabric{Name: t.Name}
	for _, s := range t.Switches {
		f.Nodes = append(f.Nodes, web.Node{Name: s.Name, Tier: s.Role.Tier(), Role: string(s.Role)})
	}
	for _, h := range t.Hosts {
		f.Nodes = append(f.Nodes, web.Node{Name: h.Name})
	}
	for _, l := range t.Links {
		f.Links = append(f.Links, web.Link{A: l.A.Node, APort: l.A.Port, B: l.B.Node, BPort: l.B.Port, Rate: float64(l.Rate)})
	}
	return f
}

// pageFrame is the round as the page has it: without what programs keep for
// themselves, but with all that ports count. Each reason for drops is in their
// text already.
func (r *round) pageFrame() *live.Frame {
	f := r.frame(true)
	for i, result := range r.switches {
		if result.Snapshot == nil {
			continue
		}
		f.Switches[i].Values = f.Switches[i].Values[:0]
		for _, reading := range result.Snapshot.Readings {
			reason := strings.HasPrefix(reading.Quantity, inspect.Drops+": ")
			if !reason && (!reading.Minor || reading.Register == "") {
				f.Switches[i].Values = append(f.Switches[i].Values, valueOf(reading))
			}
		}
	}
	return f
}

// pageEvery is how often switches are read while somebody looks.
const pageEvery = 500 * time.Millisecond

// A networkPage shows a network that this process has deployed: switches are
// read while somebody looks, or asks for metrics.
type networkPage struct {
	server   *web.Server
	exporter live.Exporter
	every    time.Duration

	mu     sync.Mutex
	survey *inspect.Survey
	round  round // what all rounds have in common
	read   time.Time
}

// watchNetwork begins to show a network.
func (p *pageServer) watchNetwork(ctx context.Context, c *cli.Console, k *controller.Controller, planned *plan.Plan, every time.Duration) (*networkPage, error) {
	n := &networkPage{every: every, round: round{scheme: planned.Scheme, fabric: planned.Topology.Name, roles: map[string]string{}}}
	var list []*inspect.Inspector
	for _, node := range planned.Nodes() {
		regs, err := k.Registers(node.Name)
		if err != nil {
			return nil, err
		}
		in, err := inspect.New(node, regs, inspect.Options{FlowsEvery: inspect.FlowsEvery(len(planned.Switches))})
		if err != nil {
			return nil, err
		}
		n.round.roles[node.Name] = string(node.Role)
		list = append(list, in)
	}
	n.survey = inspect.NewSurvey(list)
	n.server = p.serve(ctx, c, planned.Topology, n, func(err error) { c.Log.Error("the page has ended", "error", err) })
	go func() {
		for n.server.Await(ctx) == nil {
			n.look(ctx)
			if pause(ctx, n.every) != nil {
				return
			}
		}
	}()
	return n, nil
}

// look reads all switches.
func (n *networkPage) look(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	r := n.round
	r.switches = n.survey.Round(short)
	for _, result := range r.switches {
		if result.Snapshot != nil {
			r.time, r.wall = result.Snapshot.Time, result.Snapshot.Wall
		}
	}
	if ctx.Err() != nil {
		return
	}
	n.read = time.Now()
	frame := r.pageFrame()
	n.exporter.Show(frame)
	n.server.Show(frame)
}

// ServeHTTP answers a scrape, with switches as they are by now.
func (n *networkPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	old := time.Since(n.read) > n.every
	n.mu.Unlock()
	if old {
		n.look(r.Context())
	}
	n.exporter.ServeHTTP(w, r)
}

// tell adds an event, where there is a page.
func (n *networkPage) tell(sw, text string, good bool) {
	if n != nil {
		n.server.Tell(web.Event{Wall: time.Now().UnixMilli(), Switch: sw, Text: text, Good: good})
	}
}
