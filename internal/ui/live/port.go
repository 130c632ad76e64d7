package live

// Port values that every switch measures, whatever its program. A switch may have
// others, which are shown under their own names.
const (
	PortInPackets  = "rx packets"
	PortOutPackets = "tx packets"
	PortInBytes    = "rx bytes"
	PortOutBytes   = "tx bytes"
	PortInRate     = "rx rate"    // in bit/s
	PortOutRate    = "tx rate"    // in bit/s
	PortLoad       = "load"       // send rate as a share of the link rate
	PortQueue      = "queued"     // packets in the queue
	PortFill       = "queue fill" // as a share of the queue's capacity
	PortDrops      = "drops"
	PortCopies     = "copies ended"
	PortDown       = "link down" // 1 if the link is down
	PathCarried    = "carried"   // share of the group's traffic that the path carries
)
