package spec

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// NoFiles returns a Reader without files.
func NoFiles(name string) ([]byte, error) { return nil, fs.ErrNotExist }

// An origin is the source text of an experiment, so that it can be parsed again with other
// choices.
type origin struct {
	file    string
	text    []byte
	read    Reader
	library *scheme.Library
	own     []Metric // metrics that the caller reports
}

// Load parses an experiment, checks it and fills in missing values. file is its name in messages.
// library contains the schemes; nil is the catalogue. own defines metrics that the caller adds to
// runs. Errors in the text are of type *FileError.
func Load(file string, text []byte, read Reader, library *scheme.Library, own ...Metric) (*Experiment, error) {
	x := new(Experiment)
	src, err := decode(file, text, x)
	if err != nil {
		return nil, err
	}
	x.origin = origin{file, text, read, library, own}
	if err := x.complete(src, read, library); err != nil {
		return nil, err
	}
	return x, nil
}

// Complete checks an experiment built by a program and fills in missing values, like Load. name
// is its name in messages.
func (x *Experiment) Complete(name string, read Reader, library *scheme.Library) error {
	return x.complete(&source{file: name}, read, library)
}

// complete checks the experiment key by key.
func (x *Experiment) complete(src *source, read Reader, library *scheme.Library) error {
	if read == nil {
		read = NoFiles
	}
	x.files, x.last = &files{texts: map[string]string{}}, new(lastNetwork)
	read = x.files.reading(read)
	switch {
	case len(x.Schemes) > maxRows:
		return src.wrong("schemes", fmt.Errorf("%d rows: want at most %d", len(x.Schemes), maxRows))
	case len(x.Cases) > maxCases:
		return src.wrong("cases", fmt.Errorf("%d cases: want at most %d", len(x.Cases), maxCases))
	}
	x.defaults()
	if err := x.addCeilings(src); err != nil {
		return err
	}
	if err := x.checkRuns(); err != nil {
		return src.wrong("cases", err)
	}
	if x.Probes != "" && x.Probes != fromController && x.Probes != FromGenerator {
		return src.wrong("probes", fmt.Errorf("probes %q: want controller or generator", x.Probes))
	}
	if x.Values != "" && x.Values != DefaultValues && x.Values != AdvisedValues {
		return src.wrong("parameters", fmt.Errorf("parameters %q: want advised or default", x.Values))
	}
	if library == nil {
		library = &scheme.Library{}
	}
	if x.Blocks != "" {
		var err error
		if library, err = library.With(x.Blocks); err != nil {
			return src.wrong("blocks", err)
		}
	}
	if len(x.Schemes) == 0 {
		return src.wrong("schemes", errors.New("there is no scheme to run"))
	}
	if err := x.checkSchemes(src, read, library); err != nil {
		return err
	}
	if err := x.checkMetrics(src); err != nil {
		return err
	}
	if x.Observe != nil {
		if err := x.Observe.check(); err != nil {
			return src.wrong("observe", err)
		}
	}
	if err := x.checkCases(src, read); err != nil {
		return err
	}
	if err := x.checkTargets(src); err != nil {
		return err
	}
	if err := cmp.Or(x.checkAccept(src), x.checkExpect(src)); err != nil {
		return err
	}
	return x.checkVary(src)
}

// checkCases checks all cases. If the experiment does not choose the source of
// parameters and a network has no advice, all cases use the catalogue's values.
func (x *Experiment) checkCases(src *source, read Reader) error {
	open := x.Values == ""
	x.Values = cmp.Or(x.Values, AdvisedValues)
	folders := map[string]string{}
	for i := range x.Cases {
		if err := ownFolder(folders, "case", x.Cases[i].Name); err != nil {
			return src.wrong(fmt.Sprintf("cases[%d].name", i), err)
		}
		err := x.checkCase(i, src, read)
		if open && errors.Is(err, errNoAdvice) {
			x.Values, x.unadvised = DefaultValues, errors.Unwrap(err)
			return x.checkCases(src, read)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Limits of an experiment, checked before anything is generated. Each run needs a folder. Each
// case needs a network, and a program for each row.
const (
	maxRows  = 1000
	maxCases = 1000
	maxRuns  = 100_000
)

func (x *Experiment) checkRuns() error {
	if n := x.Runs(); n > maxRuns {
		return fmt.Errorf("its cases, loads, rows and seeds are %.0f runs together: want at most %d", n, maxRuns)
	}
	return nil
}

func (x *Experiment) checkSchemes(src *source, read Reader, library *scheme.Library) error {
	labels, folders := map[string]bool{}, map[string]string{}
	for i := range x.Schemes {
		s, key := &x.Schemes[i], fmt.Sprintf("schemes[%d]", i)
		var err error
		if s.made, err = library.Find(s.Scheme); err != nil {
			return src.wrong(key, err)
		}
		s.settleOwn(x.Schemes)
		if s.modelOnly() {
			if s.engineGiven && s.Engine == EngineP4 {
				return src.wrong(key+".engine", fmt.Errorf("%s has no P4 program: want native", s.Scheme))
			}
			s.Engine = EngineNative
		}
		switch native := s.made.Native(); {
		case s.Engine == EngineNative && native != nil:
			return src.wrong(key+".engine", native)
		case labels[s.Label]:
			return src.wrong(key, fmt.Errorf("two rows are called %s: give one a label", s.Label))
		case s.Engine != EngineP4 && s.Engine != EngineNative:
			return src.wrong(key+".engine", fmt.Errorf("engine %q: want p4 or native", s.Engine))
		case s.Arch != "" && !slices.Contains(codegen.Archs, s.Arch):
			return src.wrong(key+".arch", fmt.Errorf("arch %q: want one of %s", s.Arch, strings.Join(codegen.Archs, ", ")))
		case s.StatePath != "" && !slices.Contains(codegen.StatePaths, s.StatePath):
			given := key + ".state-path"
			if !src.has(given) {
				given = "state-path" // of the experiment
			}
			return src.wrong(given, fmt.Errorf("state path %q: want one of %s", s.StatePath, strings.Join(codegen.StatePaths, ", ")))
		case s.Candidates != "" && s.Candidates != byPorts && s.Candidates != ByPaths:
			return src.wrong(key+".candidates", fmt.Errorf("candidates %q: want ports or paths", s.Candidates))
		case s.Errata != "" && s.Errata != "printed":
			return src.wrong(key+".errata", fmt.Errorf("errata %q: want printed", s.Errata))
		}
		labels[s.Label] = true
		if err := ownFolder(folders, "row", s.Label); err != nil {
			return src.wrong(key, err)
		}
		for name := range s.Set {
			if !s.has(name) {
				return src.wrong(key+".set."+name, fmt.Errorf("%s has no such parameter: it has %s", s.name(), parameterNames(s.Parameters())))
			}
		}
		if s.Coeffs != "" {
			if _, err := s.Polynomial(read); err != nil {
				return src.wrong(key+".coeffs", err)
			}
		}
	}
	return nil
}

// Polynomial returns the model that coeffs names or contains.
func (s *Scheme) Polynomial(read func(string) ([]byte, error)) (*fitting.Poly, error) {
	name, text := s.Coeffs, []byte(s.Coeffs)
	if strings.HasPrefix(strings.TrimSpace(name), "{") {
		name = "coeffs"
	} else {
		var err error
		if text, err = read(name); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	poly, err := fitting.DecodePoly(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return &poly, nil
}

// ownFolder returns an error if two names would use the same folder for their runs.
func ownFolder(folders map[string]string, what, name string) error {
	folder := plain.Folder(name)
	other, taken := folders[folder]
	switch {
	case taken && other == name:
		return fmt.Errorf("two %ss are called %q", what, name)
	case taken:
		return fmt.Errorf("the %ss %q and %q would both be kept in the folder %s: want names that differ in letters and digits", what, other, name, folder)
	}
	folders[folder] = name
	return nil
}

func parameterNames(list []codegen.Param) string {
	names := lists.Map(list, func(p codegen.Param) string { return p.Name })
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (x *Experiment) checkMetrics(src *source) error {
	for i, c := range x.Classes {
		if last := i == len(x.Classes)-1; c.Name == "" || (c.Upto == 0) != last || i > 0 && !last && c.Upto <= x.Classes[i-1].Upto {
			return src.wrong(fmt.Sprintf("classes[%d]", i), errors.New("want a name and a limit above the one before; none for the last class"))
		}
	}
	for i, name := range x.Metrics {
		if _, err := x.Metric(name); err != nil {
			return src.wrong(fmt.Sprintf("metrics[%d]", i), err)
		}
	}
	return nil
}

// checkCase checks a case. Errors refer to the case's key, or to the experiment's key if the case
// inherits the value.
func (x *Experiment) checkCase(i int, src *source, read Reader) error {
	c := &x.Cases[i]
	own := fmt.Sprintf("cases[%d].", i)
	at := func(key string) string {
		if src.has(own + key) {
			return own + key
		}
		return key
	}
	t, err := x.NetworkOf(c, read)
	if err != nil {
		wrong := err.(*keyError)
		return src.wrong(at(wrong.key), wrong.err)
	}
	if c.Ties == ByPlace && t.NICs() < len(t.Hosts) {
		return src.wrong(at("ties"), fmt.Errorf("%s with hosts of several ports: want the default", ByPlace))
	}
	for j := range c.Traffic {
		if err := c.Traffic[j].resolve(t, read); err != nil {
			return src.wrong(fmt.Sprintf("%s[%d]", at("traffic"), j), err)
		}
	}
	c.settleDependent()
	if err := c.checkJobs(t); err != nil {
		wrong := err.(*keyError)
		return src.wrong(at("jobs")+wrong.key, wrong.err)
	}
	if err := c.settle(t); err != nil {
		return src.wrong(at("duration"), err)
	}
	if err := c.checkMTU(); err != nil {
		return src.wrong(at("mtu"), err)
	}
	if err := c.Switches.check(); err != nil {
		return src.wrong(at("switches"), err)
	}
	if err := c.Transport.check(); err != nil {
		return src.wrong(at("transport"), err)
	}
	if err := x.checkTrim(c); err != nil {
		return src.wrong(at("transport"), err)
	}
	if key, err := x.checkChoices(c); err != nil {
		return src.wrong(at(key), err)
	}
	for j := range c.Traffic {
		if err := c.checkStarts(&c.Traffic[j]); err != nil {
			return src.wrong(fmt.Sprintf("%s[%d]", at("traffic"), j), err)
		}
	}
	strikes := 0
	for j := range c.Faults {
		if err := c.Faults[j].check(t); err != nil {
			return src.wrong(fmt.Sprintf("%s[%d]", at("faults"), j), err)
		}
		if end := c.Length() + time.Duration(c.Drain); time.Duration(c.Faults[j].At) > end {
			return src.wrong(fmt.Sprintf("%s[%d]", at("faults"), j), fmt.Errorf("at %v: the run ends after %v (duration and drain): want an earlier time", c.Faults[j].At, Time(end)))
		}
		if strikes += max(1, c.Faults[j].Times); strikes > maxFaults {
			return src.wrong(at("faults"), fmt.Errorf("%d of them: want %d at most", strikes, maxFaults))
		}
	}
	if err := c.checkPools(t); err != nil {
		return src.wrong(at("faults"), err)
	}
	for name := range c.Set {
		if !slices.ContainsFunc(x.Schemes, func(s Scheme) bool { return s.has(name) }) {
			return src.wrong(own+"set."+name, fmt.Errorf("no scheme of this experiment has a parameter %q", name))
		}
	}
	for _, label := range c.Schemes {
		if !slices.ContainsFunc(x.Schemes, func(s Scheme) bool { return s.Label == label }) {
			return src.wrong(own+"schemes", fmt.Errorf("there is no row %q", label))
		}
	}
	if c.WarmupTime() >= c.Length() {
		return src.wrong(at("warmup"), fmt.Errorf("the warm-up is as long as the whole duration of %v", c.Duration))
	}
	return x.checkFit(c, t, src, at)
}

// checkFit checks that the topology and the schemes are compatible.
func (x *Experiment) checkFit(c *Case, t *fabric.Topology, src *source, at func(string) string) error {
	phases, err := c.Phases(t)
	if err != nil {
		return src.wrong(at("faults"), err)
	}
	for i := range x.Schemes {
		s := &x.Schemes[i]
		if s.Arch != "" && s.Arch != codegen.Archs[0] && c.MTU > usualMTU {
			return src.wrong(at("mtu"), fmt.Errorf("mtu %d: %s for %s counts queues in packets of %d bytes at most", c.MTU, s.Label, s.Arch, usualMTU))
		}
		widest := WidestGroup(phases, s.Grouping())
		if widest > codegen.MaxPaths {
			return src.wrong(at("topology"), fmt.Errorf("%d next hops in %s: a generated program has at most %d", widest, t.Name, codegen.MaxPaths))
		}
		set, err := x.Parameters(s, c, t)
		if err != nil {
			return src.wrong("parameters", err)
		}
		p := codegen.Params{
			Arch: s.Arch, Set: set, Ports: max(2, widest), MaxPort: HighestPort(plan.DevicePorts(t, s.Arch)),
			Role: string(t.Leaves()[0].Role), IPv6: s.ForwardsIPv6(t),
		}
		if _, err := s.made.Build(p); err != nil {
			return src.wrong(fmt.Sprintf("schemes[%d]", i), err)
		}
	}
	return nil
}

// resolve reads the files of the traffic and tests it.
func (tr *Traffic) resolve(t *fabric.Topology, read Reader) (err error) {
	if !slices.Contains(Patterns, tr.Pattern) {
		return fmt.Errorf("pattern %q: want one of %s", tr.Pattern, strings.Join(Patterns, ", "))
	}
	if tr.Kind != "" && !slices.Contains(Transports, tr.Kind) {
		return fmt.Errorf("transport %q: want one of %s", tr.Kind, strings.Join(Transports, ", "))
	}
	if err := tr.checkConnections(); err != nil {
		return err
	}
	switch {
	case !(tr.Load >= 0 && tr.Load <= 1): // also false for NaN
		return fmt.Errorf("load %g: want a share up to 1", tr.Load)
	case !(tr.Share >= 0 && tr.Share <= 1):
		return fmt.Errorf("share %g: want a share up to 1", tr.Share)
	case (tr.Pattern == Collective) != (tr.Collective != ""):
		return fmt.Errorf("pattern %s with collective %q: want collective: %s, and no pattern", tr.Pattern, tr.Collective, orList(Collectives))
	case tr.File != "" && tr.Pattern != List:
		return fmt.Errorf("pattern %s: file is of pattern %s alone", tr.Pattern, List)
	case tr.Pattern == burst && len(tr.At) == 0:
		return errors.New("pattern burst: want the times, as at: [1ms]")
	case tr.Pattern == List:
		tr.flows, err = tr.readList(t, read)
		return err
	}
	if tr.Pattern == Collective {
		d, err := tr.Maker(t)
		if err != nil {
			return err
		}
		return tr.checkCollective(len(d.from))
	}
	if tr.own() {
		return fmt.Errorf("algorithm, ranks, groups, order, window, chunks, repeat and compute are of collectives: want collective: %s", orList(Collectives))
	}
	if tr.Size == 0 {
		if tr.cdf, err = workload(tr.Workload, read); err != nil {
			return err
		}
		if tr.Cut > 0 {
			tr.cdf = tr.cdf.cut(float64(tr.Cut))
		}
	}
	if tr.LoadOf != "" && tr.LoadOf != OfHosts && tr.LoadOf != OfFabric {
		if _, err := fabric.ParseRate(tr.LoadOf); err != nil {
			return fmt.Errorf("load-of %q: want hosts, fabric or a rate", tr.LoadOf)
		}
	}
	d, err := tr.Maker(t)
	if err != nil {
		return err
	}
	_, err = d.rate(DefaultLoad)
	return err
}

// check returns an error if the queue settings are invalid.
func (w *SwitchSpec) check() error {
	switch {
	case w.ECN < never:
		return fmt.Errorf("ecn %d: want a number of packets, 0 for none", w.ECN)
	case w.Queue < 0:
		return fmt.Errorf("queue %d: want a number of packets", w.Queue)
	}
	return nil
}

// check returns an error if the transport is invalid.
func (t *TransportSpec) check() error {
	switch {
	case !slices.Contains(Transports, t.Kind):
		return fmt.Errorf("transport %q: want one of %s", t.Kind, strings.Join(Transports, ", "))
	case t.RDMA != (RDMASpec{}) && t.Kind != "dcqcn":
		return fmt.Errorf("rdma with %s: its constants are dcqcn's", t.Kind)
	case t.UEC != (UECSpec{}) && t.Kind != "uec":
		return fmt.Errorf("uec with %s: want kind: uec", t.Kind)
	case t.RDMA.Recovery < 0:
		return fmt.Errorf("recovery %d: want 0 or more raises", t.RDMA.Recovery)
	}
	if err := cmp.Or(t.checkEntropy(), t.UEC.check()); err != nil {
		return err
	}
	if t.RDMA.BTH && (t.RDMA.Headers != 0 && t.RDMA.Headers < sim.RoCEHeaders || t.RDMA.Answer != 0 && t.RDMA.Answer < sim.RoCEAnswer) {
		return fmt.Errorf("rdma: bth with headers of %d bytes and answers of %d: want %d and %d at least: like: hardware sets both", t.RDMA.Headers, t.RDMA.Answer, sim.RoCEHeaders, sim.RoCEAnswer)
	}
	for _, h := range []struct {
		key   string
		bytes Size
	}{{"headers", t.RDMA.Headers}, {"answer", t.RDMA.Answer}} {
		if h.bytes > 0 && (h.bytes < sim.UDPHeaders || h.bytes > sim.MostHeaders) {
			return fmt.Errorf("rdma: %s of %v: want %d bytes, those of Ethernet, IP and UDP, to %d", h.key, h.bytes, sim.UDPHeaders, sim.MostHeaders)
		}
	}
	return nil
}

func (u *UECSpec) check() error {
	for _, name := range []struct {
		key, value string
		want       []string
	}{{"control", u.Control, sim.UECControls()}, {"loss", u.Loss, sim.UECLosses()}} {
		if name.value != "" && !slices.Contains(name.want, name.value) {
			return fmt.Errorf("uec: %s %q: want %s", name.key, name.value, orList(name.want))
		}
	}
	for _, h := range []struct {
		key   string
		bytes Size
	}{{"headers", u.Headers}, {"answer", u.Answer}} {
		if h.bytes > 0 && (h.bytes < sim.UDPHeaders || h.bytes > sim.MostHeaders) {
			return fmt.Errorf("uec: %s of %v: want %d bytes (Ethernet, IP and UDP) to %d", h.key, h.bytes, sim.UDPHeaders, sim.MostHeaders)
		}
	}
	switch over := u.Oversubscription; {
	case over == 0:
	case u.Control != sim.UECControls()[sim.UECCredit]:
		return errors.New("uec: oversubscription: only receivers that grant credit use it: want control: rccc")
	case !(over >= 1 && over <= sim.MostOversubscription):
		return fmt.Errorf("uec: oversubscription %g: want 1 to %d", over, sim.MostOversubscription)
	}
	return nil
}

// checkTrim returns an error if switches of a case cannot trim packets.
func (x *Experiment) checkTrim(c *Case) error {
	if !c.Trims() {
		for _, s := range x.SchemesOf(c) {
			if strings.HasSuffix(s.Scheme, "+trim") {
				return fmt.Errorf("%s trims packets of uec with loss trim: want transport: {kind: uec}, or a scheme without +trim", s.Label)
			}
		}
		return nil
	}
	if w := &c.Switches; w.PFC != nil && *w.PFC {
		return errors.New("uec: loss trim with pfc: with PFC, queues have no limit, so no packet is trimmed: want loss timeout or gap, or pfc: false")
	}
	for _, s := range x.SchemesOf(c) {
		if s.Arch != "" && s.Arch != codegen.Archs[0] {
			return fmt.Errorf("uec: loss trim with %s: the traffic manager of Tofino drops whole packets: want loss timeout or gap", s.Label)
		}
	}
	return nil
}

// checkEntropy returns an error if the source ports of a transport are invalid.
func (t *TransportSpec) checkEntropy() error {
	kind, err := sim.ParseEntropy(cmp.Or(t.Entropy, "flow"))
	switch {
	case err != nil:
		return err
	case kind == sim.EntropyFlow && t.Paths > 1:
		return fmt.Errorf("paths %d: want entropy %s", t.Paths, orList(sim.EntropyNames()[1:]))
	case kind != sim.EntropyFlow && t.Paths != 0 && (t.Paths < 2 || t.Paths > sim.MaxPaths || bits.OnesCount(uint(t.Paths)) != 1):
		return fmt.Errorf("paths %d: want a power of two from 2 to %d", t.Paths, sim.MaxPaths)
	case t.Ports != "" && t.Ports != RandomPorts && t.Ports != consecutivePorts:
		return fmt.Errorf("ports %q: want %s or %s", t.Ports, RandomPorts, consecutivePorts)
	case kind != sim.EntropyFlow && t.Kind == "udp":
		return fmt.Errorf("entropy %s with udp, which gets no acknowledgments: want tcp, dctcp, dcqcn or uec", t.Entropy)
	}
	return nil
}

// workload finds a distribution by name, or reads it from a file.
func workload(name string, read Reader) (*CDF, error) {
	text, err := read(name)
	switch {
	case err == nil:
		return parseCDF(name, text)
	case strings.ContainsAny(name, "/.") && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("reading workload %s: %w", name, err)
	}
	return WorkloadNamed(name)
}

// WidestGroup returns the size of the largest group of any switch in any phase. After a failure,
// detours may start at more ports than before.
func WidestGroup(phases []*fabric.Topology, by fabric.Grouping) int {
	n := 0
	for _, t := range phases {
		routes := t.Routes()
		for _, s := range t.Switches {
			table, _ := routes.Table(s.Name, by)
			for _, g := range table.Groups {
				n = max(n, len(g.Hops))
			}
		}
	}
	return n
}

// HighestPort returns the largest port number of any switch.
func HighestPort(t *fabric.Topology) int {
	n := 0
	for _, s := range t.Switches {
		for _, p := range t.Ports(s.Name) {
			n = max(n, p.Number)
		}
	}
	return n
}

// A files records the files that an experiment reads, so that it can be repeated without them.
type files struct {
	mu    sync.Mutex
	texts map[string]string
}

// reading returns a Reader that records the results of read. Each file is read only
// once.
func (f *files) reading(read Reader) Reader {
	return func(name string) ([]byte, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if text, ok := f.texts[name]; ok {
			return []byte(text), nil
		}
		text, err := read(name)
		if err == nil {
			f.texts[name] = string(text)
		}
		return text, err
	}
}

// ReadFiles returns the contents of the files that the experiment has read, by name.
func (x *Experiment) ReadFiles() map[string]string {
	if x.files == nil {
		return nil
	}
	x.files.mu.Lock()
	defer x.files.mu.Unlock()
	return x.files.texts
}

// Reading returns a Reader that records the files of the experiment.
func (x *Experiment) Reading(read Reader) Reader {
	if x.files == nil {
		return read
	}
	return x.files.reading(read)
}
