package network

import (
	"errors"
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/plan"
)

// deployFailure adds the exit code and a hint to an error about switches.
func deployFailure(err error) error {
	f := &cli.Failure{Code: cli.ExitRefused, Err: err}
	if e, ok := errors.AsType[*plan.Error](err); ok {
		f.Hint = e.Hint
	}
	return f
}

// abbreviated lists as many names as fit in a line.
func abbreviated(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
