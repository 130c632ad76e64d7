package view

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/plain"
	"github.com/p4lb/p4lb/internal/ui/live"
	"github.com/p4lb/p4lb/internal/ui/web"
)

// A PageServer serves the web page of a network, and its metrics, at the
// address of --listen.
type PageServer struct {
	Listen, token string
	tokenFile     string
	cert, key     string

	Listener net.Listener
	secret   *tls.Config // nil: no TLS
}

// AddFlags adds the flags of the page. what describes its content in the help.
func (p *PageServer) AddFlags(cmd *cobra.Command, what string) {
	f := cmd.Flags()
	f.StringVar(&p.Listen, "listen", "", "serve a page that shows "+what+", and metrics, at `ADDR`, for example 127.0.0.1:9464")
	f.StringVar(&p.token, "listen-token", "", "require `TOKEN`, as /?token=TOKEN or as a bearer token")
	f.StringVar(&p.tokenFile, "listen-token-file", "", "read that token from `FILE`, so that process lists do not show it (default $"+tokenVariable+")")
	f.StringVar(&p.cert, "listen-cert", "", "serve the page over TLS with the certificate in `FILE`")
	f.StringVar(&p.key, "listen-key", "", "key of that certificate, in `FILE`")
}

// Guarded reports whether a token restricts access or TLS encrypts it.
func (p *PageServer) Guarded() bool { return p.token != "" || p.cert != "" }

// Check reports mistakes in the command line.
func (p *PageServer) Check(cmd *cobra.Command) error {
	switch {
	case p.token != "" && p.tokenFile != "":
		return cli.UsageError(cmd, "--listen-token and --listen-token-file exclude each other")
	case p.Listen == "" && p.tokenFile != "":
		return cli.UsageError(cmd, "--listen-token-file requires --listen")
	case p.Listen != "" && p.token == "":
		if err := p.readToken(); err != nil {
			return err
		}
	}
	switch {
	case p.Listen == "" && (p.token != "" || p.cert != "" || p.key != ""):
		return cli.UsageError(cmd, "--listen-token, --listen-cert and --listen-key require --listen")
	case (p.cert == "") != (p.key == ""):
		return cli.UsageError(cmd, "--listen-cert and --listen-key go together")
	}
	return nil
}

// tokenVariable is the environment variable for the token of the page.
const tokenVariable = "P4LB_LISTEN_TOKEN"

// readToken reads the token from its file or from the environment.
func (p *PageServer) readToken() error {
	if p.tokenFile == "" {
		p.token = os.Getenv(tokenVariable)
		return nil
	}
	text, err := plain.ReadFile(p.tokenFile)
	if err != nil {
		return fmt.Errorf("reading --listen-token-file %s: %w", p.tokenFile, err)
	}
	if p.token = strings.TrimSpace(string(text)); p.token == "" {
		return fmt.Errorf("--listen-token-file %s: want a token, the file is empty", p.tokenFile)
	}
	return nil
}

// stays rejects an address outside this machine without token or TLS.
func (p *PageServer) stays() error {
	if p.Guarded() || !fabric.Remote(p.Listen) {
		return nil
	}
	return cli.Hinted(fmt.Errorf("--listen %s: anyone could connect from other machines and see the network", p.Listen),
		"add --listen-token, or --listen-cert and --listen-key; or serve at 127.0.0.1 and connect through a tunnel")
}

// Open listens at the address, before the verb begins its other work.
func (p *PageServer) Open() (err error) {
	if p.Listen == "" {
		return nil
	}
	if err := p.stays(); err != nil {
		return err
	}
	if p.cert != "" {
		pair, err := cli.KeyPair(p.cert, p.key)
		if err != nil {
			return err
		}
		p.secret = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if p.Listener, err = net.Listen("tcp", p.Listen); err != nil {
		return cli.Refused("serving the page at "+p.Listen, err)
	}
	return nil
}

// Serve serves the page of a fabric until ctx ends. It calls failed if the
// server fails.
func (p *PageServer) Serve(ctx context.Context, c *cli.Console, t *fabric.Topology, metrics http.Handler, failed func(error)) *web.Server {
	s := web.New(web.Options{Fabric: drawn(t), Token: p.token, Open: fabric.Remote(p.Listen), Metrics: metrics, TLS: p.secret})
	scheme := "http"
	if p.cert != "" {
		scheme = "https"
	}
	base := scheme + "://" + p.Listener.Addr().String()
	c.Log.Info("serving the page", "address", base+"/", "metrics", base+"/metrics")
	go func() {
		if err := s.Serve(ctx, p.Listener); err != nil {
			failed(err)
		}
	}()
	return s
}

// drawn converts a topology for the page. It returns nil for nil.
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

// PageEvery is the interval between readings of the switches while a browser
// shows the page.
const PageEvery = 500 * time.Millisecond

// A NetworkPage shows a network deployed by this process. It reads the switches
// while a browser shows the page, and for requests for metrics.
type NetworkPage struct {
	server   *web.Server
	exporter live.Exporter
	every    time.Duration

	mu     sync.Mutex
	survey *inspect.Survey
	round  Round // the fields that all rounds share
	read   time.Time
}

// WatchNetwork starts to serve the page of a network.
func (p *PageServer) WatchNetwork(ctx context.Context, c *cli.Console, k *controller.Controller, planned *plan.Plan, every time.Duration) (*NetworkPage, error) {
	n := &NetworkPage{every: every, round: Round{Scheme: planned.Scheme, Fabric: planned.Topology.Name, Roles: map[string]string{}}}
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
		n.round.Roles[node.Name] = string(node.Role)
		list = append(list, in)
	}
	n.survey = inspect.NewSurvey(list)
	n.server = p.Serve(ctx, c, planned.Topology, n, func(err error) { c.Log.Error("the page has failed", "error", err) })
	n.server.SetReady() // the switches are read on demand
	go func() {
		for n.server.Await(ctx) == nil {
			n.look(ctx)
			if plain.Pause(ctx, n.every) != nil {
				return
			}
		}
	}()
	return n, nil
}

// look reads all switches and shows the result.
func (n *NetworkPage) look(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, ReachTimeout)
	defer cancel()
	r := n.round
	r.Switches = n.survey.Round(short)
	for _, result := range r.Switches {
		if result.Snapshot != nil {
			r.Time, r.Wall = result.Snapshot.Time, result.Snapshot.Wall
		}
	}
	if ctx.Err() != nil {
		return
	}
	n.read = time.Now()
	frame := r.PageFrame()
	n.exporter.Show(frame)
	n.server.Show(frame)
}

// ServeHTTP answers a request for metrics. It reads the switches first if the
// last reading is older than the interval.
func (n *NetworkPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	old := time.Since(n.read) > n.every
	n.mu.Unlock()
	if old {
		n.look(r.Context())
	}
	n.exporter.ServeHTTP(w, r)
}

// Tell shows an event on the page. n may be nil.
func (n *NetworkPage) Tell(sw, text string, good bool) {
	if n != nil {
		n.server.Tell(web.Event{Wall: time.Now().UnixMilli(), Switch: sw, Text: text, Good: good})
	}
}
