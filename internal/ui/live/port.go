package live

// Quantities of ports that a switch counts by itself, whatever it runs. Others
// may have more, which are shown as they are.
const (
	PortInPackets  = "rx packets"
	PortOutPackets = "tx packets"
	PortInBytes    = "rx bytes"
	PortOutBytes   = "tx bytes"
	PortInRate     = "rx rate"    // in bit/s
	PortOutRate    = "tx rate"    // in bit/s
	PortLoad       = "load"       // send rate as a share of the link rate
	PortQueue      = "queued"     // packets that wait
	PortFill       = "queue fill" // as a share of the room for them
	PortDrops      = "drops"
	PortCopies     = "copies ended"
	PortDown       = "link down" // 1 where it is
	PathCarried    = "carried"   // share of a path in the traffic of its group
)
