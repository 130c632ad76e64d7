package dataplane

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
)

// hashes returns the calculations of a hash in a program for Tofino, one for each
// call.
func (s *Switch) hashes(name string) (list []*hash.Calculation) {
	for _, k := range s.prog.Calcs {
		if k.Hash != nil && k.Hash.Name == name {
			list = append(list, k)
		}
	}
	return list
}

// Hashes changes the hash calculations of a program.
type Hashes struct{ s *Switch }

// Hashes returns the hash calculations of the switch.
func (s *Switch) Hashes() Hashes { return Hashes{s} }

// Info returns a hash of a program for Tofino: its description, the function
// that the program specifies, and the number of input bits. It fails if the program
// has no configurable hash called name.
func (hs Hashes) Info(name string) (*bmv2.Hash, hash.Function, int, error) {
	list := hs.s.hashes(name)
	if len(list) == 0 {
		return nil, hash.Function{}, 0, fmt.Errorf("the hash %s cannot be changed", name)
	}
	f, bits := list[0].Configurable()
	return list[0].Hash, f, bits, nil
}

// Set replaces the function of a hash; nil restores the program's own.
func (hs Hashes) Set(name string, to *hash.Matrix) error {
	if _, _, _, err := hs.Info(name); err != nil {
		return err
	}
	hs.s.mu.Lock()
	defer hs.s.mu.Unlock()
	for _, k := range hs.s.hashes(name) {
		k.Set = to
	}
	return nil
}
