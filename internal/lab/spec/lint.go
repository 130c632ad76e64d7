package spec

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/student"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Warning is a reason to doubt the results of an experiment that is known before
// the run.
type Warning struct {
	Rule   string `json:"rule"`
	Case   string `json:"case,omitempty"`
	Text   string `json:"text"`
	Reason string `json:"accepted,omitempty"` // reason for which the experiment accepts it; "": it does not
}

// String returns the warning in a line, as in "hosts-limit: case ws: …".
func (w Warning) String() string {
	text := w.Rule + ": "
	if w.Case != "" {
		text += "case " + w.Case + ": "
	}
	text += w.Text
	if w.Reason != "" {
		text += " (accepted: " + w.Reason + ")"
	}
	return text
}

// A rule checks a case and returns a message for each problem.
type rule struct {
	name  string
	About string
	look  func(*lintCase) []string
}

// A lintCase is a case and its network, as rules examine them.
type lintCase struct {
	x *Experiment
	*Case
	net  *fabric.Topology
	rows []*Scheme
}

// The rules of Lint. Experiments accept a warning by the name of its rule.
var rules = []rule{
	{"no-marking", "DCTCP and DCQCN need switches that mark packets (ECN)", (*lintCase).noMarking},
	{"no-headroom", "PFC needs buffer for packets that arrive after a pause", (*lintCase).noHeadroom},
	{"overload", "the offered load must fit the network", (*lintCase).overload},
	{"warm-up", "flows must begin after the warm-up", (*lintCase).longWarmup},
	{"one-path", "a load balancer needs several paths", (*lintCase).onePath},
	{"far-parameters", "parameters should be near the values of p4lb advise", (*lintCase).farParameters},
	{"short-drain", "flows must have time to finish", (*lintCase).shortDrain},
	{"few-seeds", "seeds and flows must suffice to detect a difference of 10 %", (*lintCase).fewSeeds},
	{"hosts-limit", "the fabric must be the bottleneck, not the hosts", (*lintCase).hostsLimit},
	{"ignored-key", "a pattern must use the keys of its traffic", (*lintCase).ignoredKeys},
	{"no-advice", "the network should have advised parameters", (*lintCase).noAdvice},
}

// RuleNames lists the rules of Lint with their descriptions.
func RuleNames() [][2]string {
	return lists.Map(rules, func(r rule) [2]string { return [2]string{r.name, r.About} })
}

// Lint returns the warnings about a checked experiment, without those that it accepts
// with a reason. A warning that applies to all cases names none.
func (x *Experiment) Lint(read Reader) ([]Warning, error) {
	if read == nil {
		read = NoFiles
	}
	read = x.Reading(read)
	type found struct{ rule, text string }
	cases := map[found][]string{}
	var order []found
	looked := 0 // number of examined cases
	for i := range x.Cases {
		c := &x.Cases[i]
		if c.ceiling != "" {
			continue // a ceiling intentionally differs from real networks
		}
		looked++
		t, err := x.NetworkOf(c, read)
		if err != nil {
			return nil, err
		}
		l := &lintCase{x, c, t, x.SchemesOf(c)}
		for _, r := range rules {
			for _, text := range r.look(l) {
				f := found{r.name, text}
				if cases[f] == nil {
					order = append(order, f)
				}
				cases[f] = append(cases[f], c.Name)
			}
		}
	}
	var list []Warning
	for _, f := range order {
		w := Warning{Rule: f.rule, Text: f.text, Reason: x.Accept[f.rule]}
		if len(cases[f]) < looked {
			w.Case = strings.Join(cases[f], ", ")
		}
		list = append(list, w)
	}
	return list, nil
}

// Unaccepted returns the warnings that the experiment does not accept.
func Unaccepted(list []Warning) []Warning {
	return lists.Filter(list, func(w Warning) bool { return w.Reason == "" })
}

// checkAccept returns an error for unknown rules and missing reasons in accept.
func (x *Experiment) checkAccept(src *source) error {
	for _, name := range slices.Sorted(maps.Keys(x.Accept)) {
		known := lists.Map(rules, func(r rule) string { return r.name })
		switch {
		case !slices.Contains(known, name):
			return src.wrong("accept."+name, fmt.Errorf("no such warning: want one of %s", strings.Join(known, ", ")))
		case strings.TrimSpace(x.Accept[name]) == "":
			return src.wrong("accept."+name, fmt.Errorf("want the reason why the warning is accepted"))
		}
	}
	return nil
}

func (l *lintCase) noMarking() []string {
	w := &l.Switches
	if !l.marks() {
		return nil
	}
	kind := l.Transport.Kind
	for _, t := range l.Traffic {
		if t.Kind == "dctcp" || t.Kind == "dcqcn" {
			kind = t.Kind
		}
	}
	if w.KMax == 0 && w.ECN <= 0 {
		return []string{fmt.Sprintf("transport %s without marking: set switches: {ecn: 65}", kind)}
	}
	if room := l.queue(); w.KMax == 0 && room > 0 && int(w.ECN) >= room {
		return []string{fmt.Sprintf("transport %s: switches mark from %d packets on, queues hold %d: set a smaller ecn", kind, w.ECN, room)}
	}
	return nil
}

// queue returns the capacity of the shortest queue between switches in packets; 0 if queues share
// a buffer.
func (l *lintCase) queue() int {
	if l.Switches.Queue > 0 {
		return l.Switches.Queue
	}
	room := 0
	for _, s := range l.net.Switches {
		for _, p := range l.net.Ports(s.Name) {
			if p.PeerTier > 0 && p.Queue > 0 {
				room = min(cmp.Or(room, p.Queue), p.Queue)
			}
		}
	}
	return room
}

// noHeadroom compares the buffer use of an ingress port before and after a pause with
// the buffer. A pause takes effect after a round trip of the link, and each side may
// have started a packet.
func (l *lintCase) noHeadroom() []string {
	w := &l.Switches
	if w.PFC == nil || !*w.PFC {
		return nil
	}
	frame := float64(l.Frame())
	for _, s := range l.net.Switches {
		ports := l.net.Ports(s.Name)
		headroom, most := 0.0, 0.0
		for _, p := range ports {
			h := 2*p.Delay.Seconds()*float64(p.Rate)/8 + 2*frame
			headroom, most = headroom+h, max(most, h)
		}
		buffer := float64(s.Buffer)
		pause := float64(w.Pause)
		if room := l.queue(); room > 0 && buffer == 0 {
			buffer = float64(room) * frame
			if pause == 0 {
				pause = 256 << 10
			}
			if pause+most > buffer {
				return []string{fmt.Sprintf("PFC pauses at %.0f KB and needs %.1f KB of headroom, but a queue holds %.0f KB: set a lower pfc-threshold or longer queues", pause/1e3, most/1e3, buffer/1e3)}
			}
			continue
		}
		if buffer > 0 && pause+headroom > buffer {
			return []string{fmt.Sprintf("PFC pauses at %.0f KB and needs %.0f KB of headroom for %d ports, but %s has a buffer of %.0f KB: set a lower pfc-threshold or a larger buffer", pause/1e3, headroom/1e3, len(ports), s.Name, buffer/1e3)}
		}
	}
	return nil
}

// offer returns the demand of the flows at the largest load. ok is false if the
// flows are listed individually.
func (l *lintCase) offer() (Offer, bool) {
	return l.Case.Offer(l.net, float64(slices.Max(l.Loads)))
}

func (l *lintCase) overload() []string {
	o, ok := l.offer()
	const most = 1.005
	switch {
	case !ok:
		return nil
	case o.Fabric > most:
		return []string{fmt.Sprintf("the flows offer %.0f %% of the fabric's capacity: set a lower load, or load-of: fabric", 100*o.Fabric)}
	case o.Hosts > most:
		return []string{fmt.Sprintf("the flows offer %.0f %% of the hosts' capacity: set a lower load", 100*o.Hosts)}
	}
	return nil
}

// checkStarts returns an error for a flow of a list that starts after the end of the run. A run has
// no completion time for it, not even a lower bound.
func (s *Setting) checkStarts(tr *Traffic) error {
	end := s.Length() + time.Duration(s.Drain)
	for i := range tr.flows {
		if f := &tr.flows[i]; f.Waits == nil && f.Start > end {
			return fmt.Errorf("%s: flow %d starts at %v, and the run ends after %v (duration and drain): want a longer drain", tr.File, i+1, Time(f.Start), Time(end))
		}
	}
	return nil
}

// lastStart returns when the last flow of a traffic begins.
func (tr *Traffic) lastStart(length time.Duration) time.Duration {
	switch {
	case tr.Pattern == List:
		last := time.Duration(0)
		for _, f := range tr.flows {
			last = max(last, f.Start)
		}
		return last
	case len(tr.At) > 0:
		return time.Duration(slices.Max(tr.At))
	case tr.Stop > 0:
		return min(length, time.Duration(tr.Stop))
	}
	return length
}

func (l *lintCase) longWarmup() []string {
	last := time.Duration(0)
	for i := range l.Traffic {
		if !l.Traffic[i].background() {
			last = max(last, l.Traffic[i].lastStart(l.Length()))
		}
	}
	if warm := l.WarmupTime(); warm > 0 && warm >= last {
		return []string{fmt.Sprintf("the warm-up of %v is longer than the trace, whose last flow begins at %v: set a shorter warmup", warm, last)}
	}
	return nil
}

func (l *lintCase) onePath() []string {
	if len(l.net.Leaves()) < 2 {
		return []string{"the network has one leaf: there is nothing to balance"}
	}
	routes := l.net.Routes()
	var list []string
	for _, by := range []fabric.Grouping{fabric.ByHops, fabric.ByPath} {
		var rows []string
		for _, s := range l.rows {
			if s.Grouping() == by {
				rows = append(rows, s.Label)
			}
		}
		if len(rows) == 0 {
			continue
		}
		widest := 0
		for _, leaf := range l.net.Leaves() {
			table, _ := routes.Table(leaf.Name, by)
			for _, g := range table.Groups {
				widest = max(widest, len(g.Hops))
			}
		}
		if widest < 2 {
			list = append(list, fmt.Sprintf("%s: each leaf has one path to every other: there is nothing to balance", strings.Join(rows, ", ")))
		}
	}
	return list
}

// farFactor is the factor by which a parameter may differ from the advised value.
const farFactor = 3

func (l *lintCase) farParameters() []string {
	var list []string
	for _, s := range l.rows {
		set, err := l.x.Parameters(s, l.Case, l.net)
		if err != nil {
			continue
		}
		for _, a := range s.Advice(l.Case, l.net) {
			for _, p := range s.Parameters() {
				if p.Name != a.Name || slices.ContainsFunc(list, func(t string) bool { return strings.HasPrefix(t, s.Label+": "+p.Name+" ") }) {
					continue
				}
				is := cmp.Or(set[p.Name], p.Default)
				if q, ok := apart(is, a.Value); ok && (q > farFactor || q < 1.0/farFactor) {
					list = append(list, fmt.Sprintf("%s: %s is %s, advised is %s", s.Label, p.Name, is, a.Value))
				}
			}
		}
	}
	return list
}

// apart returns the ratio of two parameter values, if both are positive numbers
// with the same unit.
func apart(a, b string) (float64, bool) {
	x, unitX := quantity(a)
	y, unitY := quantity(b)
	if x <= 0 || y <= 0 || unitX != unitY {
		return 0, false
	}
	return x / y, true
}

func quantity(text string) (float64, string) {
	if d, err := time.ParseDuration(strings.ReplaceAll(text, " ", "")); err == nil {
		return d.Seconds(), "s"
	}
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(text)
	}
	v, err := strconv.ParseFloat(text[:end], 64)
	if err != nil {
		return 0, ""
	}
	return v, strings.TrimSuffix(strings.TrimSpace(text[end:]), "s")
}

// largest returns the bytes of the largest flow of a traffic.
func (tr *Traffic) largest() float64 {
	switch {
	case tr.Pattern == List:
		most := int64(0)
		for _, f := range tr.flows {
			most = max(most, f.Bytes)
		}
		return float64(most)
	case tr.Size > 0:
		return float64(tr.Size)
	case tr.cdf != nil && len(tr.cdf.Points) > 0:
		return tr.cdf.Points[len(tr.cdf.Points)-1].Bytes
	}
	return 0
}

func (l *lintCase) shortDrain() []string {
	var list []string
	for i := range l.Traffic {
		tr := &l.Traffic[i]
		if tr.background() {
			continue
		}
		d, err := tr.Maker(l.net)
		if err != nil {
			continue
		}
		rate := math.Inf(1)
		rates := HostRates(l.net)
		for _, h := range lists.Set(d.from) {
			rate = min(rate, float64(rates[h]))
		}
		if tr.Kind == "udp" && tr.Speed > 0 {
			rate = min(rate, float64(tr.Speed))
		}
		need := time.Duration(tr.largest() * 8 / rate * 1e9)
		left := l.Length() + time.Duration(l.Drain) - tr.lastStart(l.Length())
		if need > left {
			list = append(list, fmt.Sprintf("the largest flow, of %v, takes %v alone on a link of %v, and the last flows have %v: set a longer drain",
				Size(tr.largest()), Time(need.Round(time.Microsecond)), fabric.Rate(rate), Time(left)))
		}
	}
	// Demand above the capacity is sent after the duration, during the drain.
	if o, ok := l.offer(); ok {
		if over := max(o.Fabric, o.Hosts) - 1; over > 0 && over*l.Length().Seconds() > time.Duration(l.Drain).Seconds() {
			list = append(list, fmt.Sprintf("the flows offer %.0f %% of the capacity for %v, and the rest cannot be sent in the drain of %v", 100*(over+1), l.Duration, l.Drain))
		}
	}
	return list
}

// wanted is the difference in percent that an experiment should be able to detect.
const wanted = 10.0

// fewSeeds estimates the interval of a difference between rows. Completion times of a
// run's flows spread at least as their sizes do, so that the mean of n flows has a
// relative standard error of cv/√n, and seeds reduce it further by Student's t.
func (l *lintCase) fewSeeds() []string {
	n := len(l.Seeds)
	if len(l.rows) < 2 {
		return nil
	}
	if n < 2 {
		return []string{"one seed gives no confidence interval: use at least 5"}
	}
	load := float64(slices.Min(l.Loads))
	var flows, mean, square float64
	for i := range l.Traffic {
		tr := &l.Traffic[i]
		if tr.background() || !tr.draws() {
			return nil // all sizes are equal, or the same in every run
		}
		count, _, err := tr.Expected(l.net, load, l.Length())
		if err != nil {
			return nil
		}
		m, s := tr.cdf.moments()
		flows, mean, square = flows+count, mean+count*m, square+count*s
	}
	flows *= 1 - float64(l.WarmupTime())/float64(l.Length())
	if flows <= 0 || mean <= 0 {
		return nil
	}
	count := flows / (1 - float64(l.WarmupTime())/float64(l.Length()))
	mean, square = mean/count, square/count
	cv := math.Sqrt(max(0, square/(mean*mean)-1))
	half := func(n int) float64 {
		t := student.T(n - 1).Quantile(0.975)
		return 100 * t * cv / math.Sqrt(flows*float64(n))
	}
	if half(n) <= wanted {
		return nil
	}
	need := n + 1
	for need < 1000 && half(need) > wanted {
		need++
	}
	return []string{fmt.Sprintf("%d seeds of about %.0f flows can only show differences of %.0f %% or more: a difference of 10 %% needs about %d seeds, or longer runs", n, flows, half(n), need)}
}

// moments returns the mean of the sizes and of their squares.
func (c *CDF) moments() (mean, square float64) {
	const n = 2000
	for i := range n {
		v := float64(c.quantile((float64(i) + 0.5) / n))
		mean += v / n
		square += v * v / n
	}
	return mean, square
}

func (l *lintCase) hostsLimit() []string {
	o, ok := l.offer()
	if !ok || len(l.rows) < 2 || o.Hosts <= o.Fabric*1.005 {
		return nil
	}
	return []string{fmt.Sprintf("the hosts are the bottleneck (offered load %.0f %% of the hosts, %.0f %% of the fabric): load balancers will differ little", 100*o.Hosts, 100*o.Fabric)}
}

func (l *lintCase) ignoredKeys() []string {
	var list []string
	for i := range l.Traffic {
		t := &l.Traffic[i]
		ignored := func(key, want string, set, used bool) {
			if set && !used {
				list = append(list, fmt.Sprintf("traffic[%d]: pattern %s ignores %s: %s", i, t.Pattern, key, want))
			}
		}
		ignored("pairs", "set pattern: pairs", len(t.Pairs) > 0, t.Pattern == pairs)
		ends := t.Pattern != Halves && t.Pattern != pairs && t.Pattern != List
		ignored("from", "set pattern: all-to-all", len(t.From) > 0, ends)
		ignored("to", "set pattern: all-to-all", len(t.To) > 0, ends && t.Pattern != permutation)
		ignored("at", "set pattern: pairs or burst", len(t.At) > 0, t.Pattern == pairs || t.Pattern == burst)
		ignored("degree", "set pattern: incast or burst", t.Degree > 0, t.Pattern == Incast || t.Pattern == burst)
		ignored("udp-rate", "set transport: udp", t.Speed > 0, t.Kind == "udp" || l.Transport.Kind == "udp")
	}
	return list
}

func (l *lintCase) noAdvice() []string {
	if l.x.unadvised == nil {
		return nil
	}
	return []string{fmt.Sprintf("%v; the catalogue's parameters are used: set parameters: default to do so without a warning", l.x.unadvised)}
}
