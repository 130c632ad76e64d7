package lower

import "github.com/p4lb/p4lb/p4/types"

// The ghost thread of Tofino 2 is a control without packets. What the traffic
// manager tells it is metadata of a fixed name, which ingress may ask for too.
const (
	ghostThread = "ghost"
	messageType = "ghost_intrinsic_metadata_t"
	messageName = "gh_intr_md"
)

// newMessage makes the place of what the ghost thread is told.
func (l *tofino) newMessage(control *instance) value {
	t, ok := l.topType(messageType).(*types.Struct)
	if !ok {
		l.unsupported(control.at, "a ghost thread without %s", messageType)
	}
	return l.intrinsic(messageName, t)
}

// lowerGhost lowers the ghost thread's control.
func (l *tofino) lowerGhost(control *instance) {
	l.gress = &gress{name: ghostThread, given: map[string]value{messageType: l.message}}
	l.block, l.hdrs = ingressBlock, nil
	l.lowerPipeline(l.pipe+ghostThread, control, l.args(control)...)
	for _, f := range leaves(l.message) {
		l.pipeline.PingPong = l.pipeline.PingPong || f.name == "ping_pong" && f.named
	}
}
