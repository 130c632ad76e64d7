package fabric

// maxNodes bounds the hosts and switches of a network: the memory of a browser's tab is
// small.
const maxNodes = 10_000
