package lab

import (
	"context"
	"errors"
	"io"
)

// runReal fails: a browser has neither sockets nor network namespaces.
func (j *Job) runReal(context.Context, RealOptions, io.Writer) (*Result, error) {
	return nil, errors.New("world " + j.world + " needs the command p4lb: a browser runs the simulator alone")
}
