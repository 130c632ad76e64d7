package primary

import (
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// An ElectionID decides between controllers: the one with the largest id is primary.
type ElectionID struct{ High, Low uint64 }

// IsZero reports whether the id is 0, which no controller may have.
func (e ElectionID) IsZero() bool { return e == ElectionID{} }

// Less reports whether e is smaller than another id.
func (e ElectionID) Less(than ElectionID) bool {
	return e.High < than.High || e.High == than.High && e.Low < than.Low
}

// Next returns the id after e.
func (e ElectionID) Next() ElectionID {
	e.Low++
	if e.Low == 0 {
		e.High++
	}
	return e
}

// String writes the id as a decimal number where it has 64 bits.
func (e ElectionID) String() string {
	if e.High == 0 {
		return fmt.Sprint(e.Low)
	}
	return fmt.Sprintf("%#x%016x", e.High, e.Low)
}

func (e ElectionID) proto() *p4v1.Uint128 { return &p4v1.Uint128{High: e.High, Low: e.Low} }

func electionOf(u *p4v1.Uint128) ElectionID { return ElectionID{u.GetHigh(), u.GetLow()} }
