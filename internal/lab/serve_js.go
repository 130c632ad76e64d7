package lab

import "errors"

// check always fails, because a browser has no sockets.
func (*Serve) check([]*Job) error {
	return errors.New("serving controllers needs the command p4lb: a browser runs the simulator alone")
}
