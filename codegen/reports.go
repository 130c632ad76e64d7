package codegen

import "fmt"

// reports describes reports from egress to ingress.
type reports struct{ *composition }

// Annotation returns the annotation for metadata that reports carry.
func (r reports) Annotation() string {
	if r.In("report") {
		return "@field_list(FIELDS_REPORT)"
	}
	return ""
}

// TwoSided reports whether reports concern two ports: the queue of the output port
// and, for RLB, the departures of packets that arrived at the input port.
func (r reports) TwoSided() bool { return r.In("reroute") && (r.In("depth") || r.In("levels")) }

// Lag returns the capacity of a link between two reports.
func (r reports) Lag() string {
	return fmt.Sprintf("%.3g KB", r.lag()/1000)
}

// lag returns the number of bytes that a link sends in T_b.
func (r reports) lag() float64 {
	return float64(r.values["link"].Int) * float64(r.Int("tb")) * tick / 8e9
}

// Room returns Q_PFC as a multiple of the bytes sent in T_b.
func (r reports) Room() string {
	return fmt.Sprintf("%.2g", float64(r.values["qpfc"].Int)/r.lag())
}

// Period returns the shortest interval between reports of a port's state. It
// is T_b; if only Hermes' rates need reports, it is longer, with one report per
// window.
func (r reports) Period() string {
	if r.In("reroute") && r.runs.like(choice) == "cautious" {
		return "WINDOW"
	}
	return "T_B"
}

// Port returns the port that a report describes: the packet's egress port, or the ingress
// port if only RLB needs the report.
func (r reports) Port() string {
	if r.In("reroute") && !r.TwoSided() {
		return "hdr.bridge.port"
	}
	return "eg.egress_port"
}

// CopyBytes returns the length of the headers that copies for reports must contain.
func (r reports) CopyBytes() int {
	bytes := 34 // Ethernet and IPv4 headers
	if r.In("overlay") {
		bytes = 64
	}
	if r.In(ipv6) {
		bytes += 20
	}
	return bytes
}

// About describes the egress pipeline.
func (r reports) About() string {
	if r.In("report") {
		return "measure, and report to ingress"
	}
	return ""
}
