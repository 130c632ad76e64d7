//go:build !js

package fabric

// maxNodes bounds the hosts and switches of a network.
const maxNodes = 60_000
