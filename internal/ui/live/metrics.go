package live

import "strings"

// Metrics follow Prometheus' conventions: one for each meaning and unit, with the unit
// at the end of the name, base units (seconds, bytes, ratios), and _total for
// counters. Port values and values that several schemes measure have their own
// metrics. Other registers share one metric per unit, with the register as a label.

// A series is the destination of a value: the metric, the factor for the unit, and
// possibly a label.
type series struct {
	metric string
	factor float64
	label  string // name of the additional label, or ""
	value  string // value of the label
}

// A quantity is a register whose values have the same meaning in all schemes.
type quantity struct{ register, unit string }

// known lists the quantities with their own metrics. Rates are omitted, because
// Prometheus computes them from counters.
var known = map[quantity]series{
	{PortInBytes, "bytes"}:      {"p4lb_port_bytes_total", 1, "direction", "receive"},
	{PortOutBytes, "bytes"}:     {"p4lb_port_bytes_total", 1, "direction", "transmit"},
	{PortInPackets, "packets"}:  {"p4lb_port_packets_total", 1, "direction", "receive"},
	{PortOutPackets, "packets"}: {"p4lb_port_packets_total", 1, "direction", "transmit"},
	{PortDrops, "packets"}:      {"p4lb_port_drops_total", 1, "", ""},
	{PortCopies, "packets"}:     {"p4lb_port_copies_ended_total", 1, "", ""},
	{PortQueue, "packets"}:      {"p4lb_port_queue_packets", 1, "", ""},
	{PortFill, "share"}:         {"p4lb_port_queue_fill_ratio", 1, "", ""},
	{PortLoad, "share"}:         {"p4lb_port_load_ratio", 1, "", ""},
	{PortDown, ""}:              {"p4lb_port_down", 1, "", ""},
	{PathCarried, "share"}:      {"p4lb_path_carried_ratio", 1, "", ""},
	{"share", "share"}:          {"p4lb_path_share_ratio", 1, "", ""},
	{"weight", ""}:              {"p4lb_path_weight", 1, "", ""},
	{"utilisation", "share"}:    {"p4lb_port_utilisation_ratio", 1, "", ""},
	{PortInRate, "bit/s"}:       {},
	{PortOutRate, "bit/s"}:      {},
}

// units lists the metrics for other registers, by unit.
var units = map[string]series{
	"occupancy":          {"p4lb_queue_occupancy_ratio", 1, "", ""},
	"congestion":         {"p4lb_congestion_ratio", 1, "", ""},
	"ns":                 {"p4lb_register_seconds", 1e-9, "", ""},
	"us":                 {"p4lb_register_seconds", 1e-6, "", ""},
	"ms":                 {"p4lb_register_seconds", 1e-3, "", ""},
	"1024ns":             {"p4lb_register_seconds", 1024e-9, "", ""},
	"bytes":              {"p4lb_register_bytes", 1, "", ""},
	"cells of 80 bytes":  {"p4lb_register_bytes", 80, "", ""},
	"cells of 176 bytes": {"p4lb_register_bytes", 176, "", ""},
	"packets":            {"p4lb_register_packets", 1, "", ""},
	"share":              {"p4lb_register_ratio", 1, "", ""},
	"bit/s":              {"p4lb_register_bytes_per_second", 0.125, "", ""},
	"bytes/s":            {"p4lb_register_bytes_per_second", 1, "", ""},
}

// seriesOf returns the series of a value. Its metric is empty if the value is not
// exported.
func seriesOf(v *Value) series {
	if s, ok := known[quantity{v.Register, v.Unit}]; ok {
		return s
	}
	if reason, ok := strings.CutPrefix(v.Register, PortDrops+": "); ok {
		return series{"p4lb_port_drops_by_reason_total", 1, "reason", reason}
	}
	if s, ok := units[v.Unit]; ok {
		s.label, s.value = "register", v.Register
		return s
	}
	return series{"p4lb_register", 1, "register", v.Register}
}

// metrics lists all metrics. docs/grafana.json relies on their names.
var metrics = []metric{
	{"p4lb_port_bytes_total", "counter", "Bytes that a port has received or sent since the switch came up.", writeValues},
	{"p4lb_port_packets_total", "counter", "Packets that a port has received or sent since the switch came up.", writeValues},
	{"p4lb_port_drops_total", "counter", "Packets that went no further, at the port where they came in or would have left.", writeValues},
	{"p4lb_port_drops_by_reason_total", "counter", "Packets that went no further, by reason.", writeValues},
	{"p4lb_port_copies_ended_total", "counter", "Copies of packets that the program made for itself and ended, where their packet came in or they would have left.", writeValues},
	{"p4lb_port_queue_packets", "gauge", "Packets that wait to leave by a port.", writeValues},
	{"p4lb_port_queue_fill_ratio", "gauge", "Occupied share of a port's queue.", writeValues},
	{"p4lb_port_load_ratio", "gauge", "Send rate of a port as a share of its link rate.", writeValues},
	{"p4lb_port_utilisation_ratio", "gauge", "The same as the program of the switch measures it.", writeValues},
	{"p4lb_port_down", "gauge", "1 if there is no link at a port.", writeValues},
	{"p4lb_path_carried_ratio", "gauge", "Share of a path in the traffic of its group.", writeValues},
	{"p4lb_path_share_ratio", "gauge", "Intended share of a path in the traffic of its group.", writeValues},
	{"p4lb_path_weight", "gauge", "The weight that a path is drawn by.", writeValues},
	{"p4lb_queue_occupancy_ratio", "gauge", "Occupancy of a queue as a register has it.", writeValues},
	{"p4lb_congestion_ratio", "gauge", "A congestion index as a register has it.", writeValues},
	{"p4lb_register_seconds", "gauge", "A time that a register has.", writeValues},
	{"p4lb_register_bytes", "gauge", "A number of bytes that a register has.", writeValues},
	{"p4lb_register_bytes_per_second", "gauge", "A rate that a register has.", writeValues},
	{"p4lb_register_packets", "gauge", "A number of packets that a register has.", writeValues},
	{"p4lb_register_ratio", "gauge", "A share that a register has.", writeValues},
	{"p4lb_register", "gauge", "Value of a register as a plain number, or in the unit of its label.", writeValues},
	{"p4lb_switch_up", "gauge", "1 if the switch could be read the last time.", writeUp},
	{"p4lb_switch_clock_seconds", "gauge", "The clock of the switch's own timestamps.", writeClocks},
	{"p4lb_reads_total", "counter", "How often the switch was to be read.", writeReads},
	{"p4lb_read_failures_total", "counter", "How often the switch could not be read.", writeFailures},
}

// writeValues writes the values of a metric.
func writeValues(p *page, name string, e *Exporter) {
	for i := range e.frame.Switches {
		sw := &e.frame.Switches[i]
		head := ""
		for j := range sw.Values {
			v := &sw.Values[j]
			s := seriesOf(v)
			if s.metric != name {
				continue
			}
			if head == "" {
				head = p.labels("scheme", e.frame.Scheme, "switch", sw.Name)
			}
			p.begin(name, head)
			if s.label != "" {
				p.label(s.label, s.value)
			}
			p.place(v)
			if name == "p4lb_register" {
				p.label("unit", v.Unit)
			}
			p.end(v.Number * s.factor)
		}
	}
}
