package advice

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/p4lb/p4lb/fitting"
)

// safeGap returns the largest difference in delay between two paths if no queue exceeds the
// marking threshold. Packets with a larger distance cannot overtake each other.
func (n Network) safeGap() time.Duration {
	return (n.SlowRTT-n.RTT)/2 + time.Duration(n.Hops)*n.serve(n.ECN)
}

func (n Network) gapFormula() string {
	return fmt.Sprintf("(RTT_max-RTT_min)/2 + hops·K·MTU·8/C = (%s-%s)/2 + %d·%s", us(n.SlowRTT), us(n.RTT), n.Hops, us(n.serve(n.ECN)))
}

func letflow(n Network) ([]Parameter, error) {
	return []Parameter{
		{Name: "gap", Value: ticks(n.safeGap()), Formula: n.gapFormula(), Source: "LetFlow takes 500 us; a gap above the largest difference of delay never reorders"},
	}, nil
}

func presto(n Network) ([]Parameter, error) {
	const cell = 64 << 10
	return []Parameter{
		{Name: "cell", Value: "64KiB", Formula: fmt.Sprintf("64 KiB = %d packets of %d bytes", (cell+n.MTU-1)/n.MTU, n.MTU), Source: "Presto: the largest segment that a host hands over"},
	}, nil
}

// drill: in the paper, a switch knows every queue length when a packet arrives. A program learns
// queue lengths from reports, so it needs one report per packet of a full link.
func drill(n Network) ([]Parameter, error) {
	return []Parameter{
		{Name: "tb", Value: ticks(n.serve(1)), Formula: "MTU·8/C", Source: "DRILL compares the queues at every packet: a report for each packet that a full link sends"},
	}, nil
}

// adaptive: grades are shares of the network's queue capacity.
func adaptive(n Network) ([]Parameter, error) {
	list, err := drill(n)
	list[0].Source = "a report for each packet that a full link sends, on switches without shared registers"
	if n.Buffer >= 2 {
		list = append(list, Parameter{Name: "qcap", Value: fmt.Sprintf("%d packets", n.Buffer), Formula: "buffer", Source: "grades are shares of the queue's capacity"})
	}
	list = append(list, Parameter{Name: "gap", Value: "10us", Formula: "constant", Source: "uet-htsim, -ar_sticky_delta"})
	return list, err
}

// trim: a queue trims packets when it is full.
func trim(n Network) ([]Parameter, error) {
	if n.Buffer < 1 {
		return nil, nil
	}
	return []Parameter{
		{Name: "trimat", Value: fmt.Sprintf("%d packets", n.Buffer), Formula: "buffer", Source: "Ultra Ethernet: a switch trims a packet for which it has no room"},
	}, nil
}

func conga(n Network) ([]Parameter, error) {
	return []Parameter{
		window("2^k us >= max(160 us, RTT)", max(160*time.Microsecond, n.RTT), "CONGA: tau = 160 us; the estimator has to average over a round trip"),
		{Name: "quantum", Value: "3 bits", Formula: "constant", Source: "CONGA"},
		{Name: "gap", Value: ticks(max(500*time.Microsecond, n.safeGap())), Formula: "max(500 us, " + n.gapFormula() + ")", Source: "CONGA takes 500 us"},
		{Name: "ageing", Value: ticks(max(10*time.Millisecond, 10*n.RTT)), Formula: "max(10 ms, 10·RTT)", Source: "CONGA takes 10 ms"},
	}, nil
}

func hula(n Network) ([]Parameter, error) {
	probe := max(fitting.HULAProbe, n.RTT)
	return []Parameter{
		{Name: "tprobe", Value: ticks(probe), Formula: fmt.Sprintf("max(200 us, RTT = %s)", us(n.RTT)), Source: "HULA: a probe is of no use before the last has come around"},
		window("2^k us >= 2·T_probe", 2*probe, "HULA: the estimator outlives a probe period"),
		{Name: "tfail", Value: ticks(3 * probe), Formula: "3·T_probe", Source: "three probes lost in a row: the path has failed (assumed)"},
		{Name: "gap", Value: ticks(max(100*time.Microsecond, n.RTT)), Formula: "max(100 us, RTT)", Source: "HULA"},
	}, nil
}

// window returns the parameter k of an estimator whose memory, 2^k µs, is at least d.
func window(formula string, d time.Duration, source string) Parameter {
	k, t := fitting.DHLB{RTT: d}.Delta()
	return Parameter{Name: "window", Value: fmt.Sprint(k), Formula: fmt.Sprintf("%s = %s: 2^%d us = %s", formula, us(d), k, us(t)), Source: source}
}

func qall(n Network) ([]Parameter, error) {
	// τ must exceed T. The paper measures T as "end-to-end delay level".
	tau := n.SlowRTT/2 + time.Duration(n.Hops)*n.serve(n.Buffer)
	update := max(n.serve(1), tau/10)
	share := float64(n.serve(1)) / float64(update) * 100
	return []Parameter{
		{Name: "tau", Value: ticks(tau), Formula: fmt.Sprintf("RTT_max/2 + hops·Q·MTU·8/C = %s/2 + %d·%s", us(n.SlowRTT), n.Hops, us(n.serve(n.Buffer))),
			Source: "QALL IV-C: of the end-to-end delay's level, above T"},
		{Name: "tb", Value: ticks(update), Formula: "max(MTU·8/C, tau/10)", Source: fmt.Sprintf(
			"QALL IV-E takes tau/10; a report of 10 bytes each is %s B/s per port (Section VI-F), as a clone of a full packet at most %.2g %% of a link",
			number(10/update.Seconds()), share)},
		{Name: "gap", Value: ticks(max(tau, n.safeGap())), Formula: "the end-to-end delay, as tau", Source: "QALL IV-B"},
	}, nil
}

func qdaps(n Network) ([]Parameter, error) {
	q := fitting.QDAPS{C: n.pps(), RTT: n.RTT.Seconds(), K: float64(n.ECN), Y: n.FlowSize / float64(n.MTU), Cap: float64(n.Buffer)}
	if n.Buffer == 0 {
		q.Cap = math.Inf(1)
	}
	list := []Parameter{
		{Name: "S", Value: fmt.Sprintf("%.0f packets", math.Floor(q.Closed())),
			Formula: fmt.Sprintf("sqrt(1.6·Y) - C·RTT = sqrt(1.6·%s) - %s", number(q.Y), number(q.C*q.RTT)), Source: "QDAPS Eq. 14 with r_1 = 3/4·C of Eq. 4"},
		{Name: "S exact", Value: "none",
			Formula: "largest S with FCT_1 >= FCT_2, T_2 = 2·S_2/(r_1/2+r_2)", Source: "QDAPS Eq. 13, its T_2 corrected to the rate that the text gives"},
		{Name: "sweep", Value: ticks(2 * n.RTT), Formula: "2·RTT", Source: "QDAPS III-D: when idle flows are forgotten"},
	}
	if n.Buffer == 0 {
		// FCT_2 depends on the marking threshold, which no closed formula contains.
		list[1].Value, list[1].Warning = "unknown", "it depends on the queue: --set buffer=PACKETS"
	} else if s, err := q.Numeric(); err == nil {
		list[1].Value = fmt.Sprintf("%.0f packets", math.Floor(s))
	}
	if math.Sqrt(1.6*q.Y)-q.C*q.RTT < 2 {
		list[0].Warning = fmt.Sprintf("the formula gives %s: a flow of %s packets is too short against C·RTT = %s to be rerouted at all",
			number(math.Sqrt(1.6*q.Y)-q.C*q.RTT), number(q.Y), number(q.C*q.RTT))
	}
	return list, nil
}

func rlb(n Network) ([]Parameter, error) {
	d := cmp.Or(n.Delay, n.RTT/4)
	r := fitting.RLB{N: float64(n.Incast), C: n.Rate / 8, D: d.Seconds(), QPFC: n.PFC, TRC: n.Recirc.Seconds(), MTU: float64(n.MTU)}
	low, high, take := r.Threshold()
	threshold := Parameter{Name: "qth", Value: fmt.Sprintf("%.0fB", math.Floor(take)),
		Formula: fmt.Sprintf("[d·C, Q_PFC-d·C·(n-1)] = [%.0f, %.0f] bytes, lower end, at most Q_PFC/2", low, high),
		Source:  "RLB Eq. 3 with all rates at C"}
	if low > high {
		threshold.Warning = fmt.Sprintf("the range is empty: n·d·C = %d·%.0f bytes exceeds Q_PFC = %.0f; it holds up to n = %d, so a warning may come too late",
			n.Incast, low, n.PFC, r.Senders())
	}
	packets, each := r.Recirculations(take)
	recirculations := Parameter{Name: "rc", Value: fmt.Sprint(each),
		Formula: fmt.Sprintf("N_rc = (Q_PFC-Q-(n-1)·C·t_rc)/MTU = %d at Q = Q_th, at most 8", packets), Source: "RLB Eq. 5 with the queue of Eq. 4, in packets"}
	if each == 0 {
		recirculations.Warning = "no room to recirculate at all: every warned packet is rerouted"
	}
	return []Parameter{
		threshold, recirculations,
		{Name: "dt", Value: ticks(d), Formula: "d", Source: "RLB III-B: the interval of the derivative is the delay of a link"},
		{Name: "twarn", Value: ticks(2 * d), Formula: "2·d", Source: "the warning goes up a link, and packets on their way come down it (assumed)"},
		{Name: "t_rc", Value: us(n.Recirc), Formula: "queue of the recirculation port divided by its rate; one packet at least", Source: "RLB V; measured at run time"},
		{Name: "hold", Value: ticks(2 * n.RTT), Formula: "2·RTT", Source: "when a warning ends is left open; assumed"},
	}, nil
}

func pdlb(n Network) ([]Parameter, error) {
	base := fitting.PDLB{M: n.Paths, Good: n.RTT.Seconds(), X: 1, C: n.pps(), Buffer: float64(n.Buffer),
		Size: fitting.PDLBFlow, Flows: float64(n.Flows)}
	ratios := []float64{2, 3, 6}
	if x := float64(n.SlowRTT) / float64(n.RTT); x > 1 {
		ratios = []float64{x}
	}
	var list []Parameter
	for bad := range n.Paths + 1 {
		for _, x := range ratios {
			p := base
			p.Bad, p.X = bad, x
			gran, fct, err := p.Granularity()
			if err != nil {
				return nil, err
			}
			name := fmt.Sprintf("gran[%d bad, X=%.3g]", bad, x)
			if bad == 0 {
				name = "gran[0 bad]"
			}
			list = append(list, Parameter{Name: name, Value: fmt.Sprintf("%d packets", gran),
				Formula: fmt.Sprintf("argmin over 1..44 of the FCT of %d packets, %.3g ms", fitting.PDLBFlow, fct*1e3), Source: "PDLB Eq. 10"})
			if bad == 0 {
				break
			}
		}
	}
	list = append(list, Parameter{Name: "period", Value: ticks(max(100*time.Microsecond, n.RTT)), Formula: "max(100 us, RTT)", Source: "PDLB III: the sender measures every 100 us"})
	return list, nil
}

func dhlb(n Network) ([]Parameter, error) {
	d := fitting.DHLB{RTT: n.SlowRTT}
	list := []Parameter{
		window("delta = 2^k us >= RTT", n.SlowRTT, "DHLB Eq. 1, divided by delta: as printed it diverges"),
		{Name: "gap", Value: ticks(d.Gap()), Formula: "RTT", Source: "DHLB 3.1"},
	}
	for _, load := range []float64{0.1, 0.3, 0.5, 0.7, 0.9} {
		period := d.Probe(load)
		overhead := fitting.ProbeOverhead(64, float64(n.Leaves), 1, period, n.Rate/8)
		list = append(list, Parameter{Name: fmt.Sprintf("tprobe[load %.0f %%]", 100*load), Value: ticks(period),
			Formula: fmt.Sprintf("clamp(theta/sigma, 2·gap, 10 ms), theta = 180 us; %.2g %% of a link", 100*overhead), Source: "DHLB Eq. 2 and 3"})
	}
	if d.Probe(0.9) > fitting.HULAProbe {
		list[len(list)-1].Warning = fmt.Sprintf("twice the gap is the bound: probes are rarer than HULA's %s at any load", us(fitting.HULAProbe))
	}
	return list, nil
}
