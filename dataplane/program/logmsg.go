package program

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// logMsg links log_msg. Nothing is evaluated if nobody listens.
func (l *Linker) logMsg(pr *bmv2.Primitive) (vector.Step, error) {
	format, list := pr.Parameters[0].Unwrap(), pr.Parameters[1].Unwrap()
	if format == nil || format.Type != bmv2.TypeString || list == nil || list.Type != bmv2.TypeParametersVector {
		return nil, errors.New("expected a string and a vector of parameters")
	}
	parts := splitFormat(format.Name)
	if len(parts)-1 != len(list.List) {
		return nil, fmt.Errorf("the format has %d places for %d arguments", len(parts)-1, len(list.List))
	}
	var args []func(*vector.State) *big.Int
	for _, e := range list.List {
		v, err := l.Number(e)
		if err != nil {
			return nil, err
		}
		args = append(args, v.BigFn())
	}
	s := l.prog
	return func(p *vector.State) {
		if s.opts.Log == nil {
			return
		}
		var b strings.Builder
		b.WriteString(parts[0])
		for i, arg := range args {
			b.WriteString(arg(p).String())
			b.WriteString(parts[i+1])
		}
		s.opts.Log(b.String())
	}, nil
}

// splitFormat cuts a format at its {…}; \{ and \} are braces.
func splitFormat(s string) []string {
	var parts []string
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '{' || s[i+1] == '}'):
			i++
			b.WriteByte(s[i])
		case s[i] == '{' && strings.IndexByte(s[i:], '}') > 0:
			i += strings.IndexByte(s[i:], '}')
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(s[i])
		}
	}
	return append(parts, b.String())
}
