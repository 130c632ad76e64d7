package codegen

// catalogue lists the schemes of the papers, and the baselines that they
// compare themselves with.
var catalogue = []Row{
	{Name: "ecmp", Title: "equal-cost multi-path, a hash for each flow", Source: "RFC 2992, the baseline of all papers",
		Granularity: "flow", Signal: "none", Choice: "hash"},
	{Name: "wcmp", Title: "weighted-cost multi-path", Source: "Zhou et al., WCMP, EuroSys 2014",
		Granularity: "flow", Signal: "weights", Choice: "grid"},
	{Name: "rps", Title: "random packet spraying", Source: "Dixit et al., INFOCOM 2013",
		Granularity: "packet", Signal: "none", Choice: "uniform"},
	{Name: "drb", Title: "packets in turn", Source: "Cao et al., DRB, CoNEXT 2013",
		Granularity: "packet", Signal: "none", Choice: "round-robin"},
	{Name: "letflow", Title: "flowlets on random paths", Source: "Vanini et al., Let It Flow, NSDI 2017",
		Granularity: "flowlet", Signal: "none", Choice: "uniform"},
	{Name: "presto", Title: "flowcells in turn", Source: "He et al., Presto, SIGCOMM 2015",
		Granularity: "flowcell", Signal: "none", Choice: "round-robin"},
	{Name: "drill", Title: "packets to the least of a few queues", Source: "Ghorbani et al., DRILL, SIGCOMM 2017",
		Granularity: "packet", Signal: "queue", Choice: "sampled"},
	{Name: "conga", Title: "flowlets on the least congested path", Source: "Alizadeh et al., CONGA, SIGCOMM 2014",
		Granularity: "flowlet", Signal: "piggyback", Choice: "least"},
	{Name: "hula", Title: "flowlets on the path of the best probe", Source: "Katta et al., HULA, SOSR 2016",
		Granularity: "flowlet", Signal: "utilisation", Choice: "best-hop"},
	{Name: "hermes", Title: "flows that move with caution", Source: "Zhang et al., Hermes, SIGCOMM 2017",
		Granularity: "flow", Signal: "classes", Choice: "cautious"},
	{Name: "flowbender", Title: "flows that congestion makes hash again", Source: "Kabbani et al., FlowBender, CoNEXT 2014",
		Granularity: "flow", Signal: "echo", Choice: "rehash"},
	{Name: "clove", Title: "flowlets on the least marked path", Source: "Katta et al., Clove, CoNEXT 2017",
		Granularity: "flowlet", Signal: "marks", Choice: "least"},

	{Name: "qall-pkt", Title: "packets spread by queue behaviour", Source: qall,
		Granularity: "packet", Signal: "behaviour", Choice: "grid"},
	{Name: "qall-flowlet", Title: "flowlets spread by queue behaviour", Source: qall,
		Granularity: "flowlet", Signal: "behaviour", Choice: "grid", Defaults: map[string]string{"gap": "10ms"}},
	fitted("qall-linear", "packet", "1"),
	fitted("qall-linear-flowlet", "flowlet", "1"),
	fitted("qall-poly2", "packet", "2"),
	fitted("qall-poly2-flowlet", "flowlet", "2"),
	fitted("qall-poly3", "packet", "3"),
	fitted("qall-poly3-flowlet", "flowlet", "3"),
	fitted("qall-poly4", "packet", "4"),
	fitted("qall-poly4-flowlet", "flowlet", "4"),
	fitted("qall-poly5", "packet", "5"),
	fitted("qall-poly5-flowlet", "flowlet", "5"),
	fitted("qall-poly6", "packet", "6"),
	fitted("qall-poly6-flowlet", "flowlet", "6"),
	fitted("qall-poly7", "packet", "7"),
	fitted("qall-poly7-flowlet", "flowlet", "7"),
	fitted("qall-poly8", "packet", "8"),
	fitted("qall-poly8-flowlet", "flowlet", "8"),
	fitted("qall-poly9", "packet", "9"),
	fitted("qall-poly9-flowlet", "flowlet", "9"),
	fitted("qall-poly10", "packet", "10"),
	fitted("qall-poly10-flowlet", "flowlet", "10"),

	{Name: "qdaps", Title: "packets in order, by queueing delay", Source: "Huang et al., QDAPS",
		Granularity: "packet", Signal: "queue", Choice: "ordered", Defaults: map[string]string{"d": "16"}},
	{Name: "qdaps-star", Title: "packets in order, by queueing and leaf-to-leaf delay", Source: "Huang et al., QDAPS, Section III-D",
		Granularity: "packet", Signal: "one-way", Choice: "ordered", Defaults: map[string]string{"d": "16"}},
	{Name: "pdlb", Title: "flowcells whose size follows the paths", Source: "PDLB, with the edge switch in the place of the sender",
		Granularity: "adaptive", Signal: "delay", Choice: "uniform"},
	{Name: "dhlb", Title: "flowlets in proportion to load degrees", Source: "DHLB",
		Granularity: "flowlet", Signal: "degree", Choice: "grid", Defaults: map[string]string{"link": "200Mbps"}},
}

const qall = "Liu et al., QALL"

// fitted is a row of QALL's Section V.
func fitted(name, granularity, degree string) Row {
	return Row{Name: name, Title: granularity + "s spread by a polynomial of degree " + degree + " in queue behaviour", Source: qall + ", Section V",
		Granularity: granularity, Signal: "fitted", Choice: "grid", Defaults: map[string]string{"degree": degree, "gap": "10ms"}}
}
