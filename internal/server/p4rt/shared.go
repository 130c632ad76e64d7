package p4rt

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// A sharedProgram is a device config that several devices hold.
type sharedProgram struct{ bytes []byte }

// programs maps the digest of a device config to its only copy.
var programs struct {
	sync.Mutex
	byDigest map[[sha256.Size]byte]weak.Pointer[sharedProgram]
}

// share returns the only copy of a device config. A network of a thousand switches has
// few programs, and some are long.
func share(config []byte) *sharedProgram {
	key := sha256.Sum256(config)
	programs.Lock()
	defer programs.Unlock()
	if s := programs.byDigest[key].Value(); s != nil {
		return s
	}
	s := &sharedProgram{config}
	if programs.byDigest == nil {
		programs.byDigest = map[[sha256.Size]byte]weak.Pointer[sharedProgram]{}
	}
	programs.byDigest[key] = weak.Make(s)
	runtime.AddCleanup(s, forget, key)
	return s
}

// forget removes a device config that no device holds.
func forget(key [sha256.Size]byte) {
	programs.Lock()
	defer programs.Unlock()
	if programs.byDigest[key].Value() == nil {
		delete(programs.byDigest, key)
	}
}

// config returns c with the only copy of its device config.
func (s *sharedProgram) config(c *p4v1.ForwardingPipelineConfig) *p4v1.ForwardingPipelineConfig {
	return &p4v1.ForwardingPipelineConfig{P4Info: c.GetP4Info(), P4DeviceConfig: s.bytes, Cookie: c.GetCookie()}
}
