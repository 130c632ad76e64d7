package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Commands arrive over a socket in the kernel's abstract namespace, which needs no
// file, from processes of the same user. A connection carries one command. The
// client sends a request with the files of standard input, output and error, and
// then signals. The server sends the exit code at the end. If the connection
// breaks, the command is ended.

// A request is a command to run on a host. Without a command, it requests a socket
// on the host, or is a call for the process itself.
type request struct {
	Host string   `json:"host"`
	Call bool     `json:"call,omitempty"`
	UDP  bool     `json:"udp,omitempty"` // of a request for a socket
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

// An answer ends a connection. It contains the exit code of the command, or the reason for not
// starting it.
type answer struct {
	Exit  int    `json:"exit"`
	Error string `json:"error,omitempty"`
}

// A note is a signal for the command.
type note struct {
	Signal int `json:"signal"`
}

const (
	maxRequest  = 1 << 17 // bytes, environment included
	maxCommands = 256     // limit for concurrent commands
	// hangup is the time for a command to end after its client has disconnected.
	hangup = time.Second
	// notStarted is the exit code of a command that could not be started.
	notStarted = 127
)

// A Door lets other processes of the same user run commands on the hosts and call this process.
type Door struct {
	Address  string
	listener *net.UnixListener
	network  *Network // nil: no hosts
	answer   Answer   // nil: no calls
	serving  sync.WaitGroup
	slots    chan struct{}
}

// Serve opens a door to the hosts of a network, which may be nil, and for calls.
func Serve(n *Network, calls Answer) (*Door, error) {
	address := fmt.Sprintf("@p4lb/%d/%d", os.Getpid(), time.Now().UnixNano())
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: address, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("waiting for commands: %w", err)
	}
	d := &Door{Address: address, listener: l, network: n, answer: calls, slots: make(chan struct{}, maxCommands)}
	d.serving.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				time.Sleep(hangup / 10) // no file descriptor is available
				continue
			}
			select {
			case d.slots <- struct{}{}:
				d.serving.Go(func() {
					defer func() { <-d.slots }()
					d.serve(c)
				})
			default:
				reply(c, answer{Exit: notStarted, Error: fmt.Sprintf("%d commands run already", maxCommands)})
				c.Close()
			}
		}
	})
	return d, nil
}

// Close closes the door; running commands continue.
func (d *Door) Close() error { return d.listener.Close() }

func reply(c *net.UnixConn, a answer) {
	text, err := json.Marshal(a)
	if err == nil {
		c.Write(text) // the client may have disconnected
	}
}

// serve runs one command.
func (d *Door) serve(c *net.UnixConn) {
	defer c.Close()
	ask, files, err := receive(c)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		reply(c, answer{Exit: notStarted, Error: err.Error()})
		return
	}
	switch {
	case ask.Call:
		d.call(c, ask, files)
		return
	case d.network == nil:
		reply(c, answer{Exit: notStarted, Error: "the network has no hosts"})
		return
	case len(ask.Args) == 0:
		d.hand(c, ask)
		return
	}
	cmd := exec.Command(ask.Args[0], ask.Args[1:]...)
	cmd.Env, cmd.Dir = ask.Env, ask.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	done := make(chan answer, 1)
	err = d.network.Run(ask.Host, cmd, func(err error) { done <- exitOf(cmd, err) })
	if err != nil {
		reply(c, answer{Exit: notStarted, Error: err.Error()})
		return
	}
	gone := make(chan struct{})
	d.serving.Go(func() {
		defer close(gone)
		buf := make([]byte, 256)
		for {
			k, err := c.Read(buf)
			var told note
			if err != nil || k == 0 || json.Unmarshal(buf[:k], &told) != nil {
				return
			}
			unix.Kill(-cmd.Process.Pid, unix.Signal(told.Signal))
		}
	})
	select {
	case a := <-done:
		reply(c, a)
	case <-gone:
		unix.Kill(-cmd.Process.Pid, unix.SIGHUP)
		select {
		case <-done:
		case <-time.After(hangup):
			unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
			<-done
		}
	}
}

// call executes a call. Its context ends when the caller disconnects or is
// interrupted.
func (d *Door) call(c *net.UnixConn, ask request, files []*os.File) {
	if d.answer == nil || len(files) != 3 {
		reply(c, answer{Exit: notStarted, Error: "this process answers no calls"})
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d.serving.Go(func() {
		defer cancel()
		var told note
		buf := make([]byte, 256)
		for {
			n, err := c.Read(buf)
			if err != nil || n == 0 || json.Unmarshal(buf[:n], &told) != nil || syscall.Signal(told.Signal) != syscall.SIGWINCH {
				return
			}
		}
	})
	exit := d.answer(ctx, Call{ask.Args, ask.Dir, files[0], files[1], files[2]})
	reply(c, answer{Exit: exit})
}

// hand passes sockets on a host to the client, one for each request.
func (d *Door) hand(c *net.UnixConn, ask request) {
	for {
		create := d.network.Socket
		if ask.UDP {
			create = d.network.Datagrams
		}
		fd, err := create(ask.Host)
		if err != nil {
			reply(c, answer{Exit: notStarted, Error: err.Error()})
			return
		}
		text, _ := json.Marshal(answer{})
		_, _, err = c.WriteMsgUnix(text, unix.UnixRights(fd), nil)
		unix.Close(fd)
		if err != nil {
			return
		}
		buf := make([]byte, maxRequest)
		n, err := c.Read(buf)
		ask = request{}
		if err != nil || n == 0 || json.Unmarshal(buf[:n], &ask) != nil || len(ask.Args) > 0 {
			return
		}
	}
}

// exitOf returns the exit status of a command by the shell's convention.
func exitOf(cmd *exec.Cmd, err error) answer {
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return answer{Exit: 128 + int(status.Signal())}
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return answer{Exit: notStarted, Error: err.Error()}
	}
	return answer{Exit: cmd.ProcessState.ExitCode()}
}

// receive reads a request of the same user, with its three files.
func receive(c *net.UnixConn) (ask request, files []*os.File, err error) {
	if err := sameUser(c); err != nil {
		return ask, nil, err
	}
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	defer c.SetReadDeadline(time.Time{})
	text, control := make([]byte, maxRequest), make([]byte, unix.CmsgSpace(3*4))
	n, m, _, _, err := c.ReadMsgUnix(text, control)
	if err != nil {
		return ask, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:m])
	if err != nil {
		return ask, nil, err
	}
	for _, msg := range messages {
		fds, err := unix.ParseUnixRights(&msg)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "standard stream"))
		}
	}
	if err := json.Unmarshal(text[:n], &ask); err != nil || len(files) != 3 && len(ask.Args) > 0 {
		return ask, files, errors.New("not a request for a command")
	}
	return ask, files, nil
}

// sameUser returns an error for other users.
func sameUser(c *net.UnixConn) (err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if e := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return e
	}
	if err == nil && int(peer.Uid) != os.Getuid() {
		err = errors.New("the network is another user's")
	}
	return err
}

// ErrGone is wrapped by the error about a network that no longer answers.
var ErrGone = errors.New("the network is not up any more")

// dial connects to a door of the same user. It refuses other users, because the
// request passes the environment and files of this process.
func dial(address string) (*net.UnixConn, error) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: address, Net: "unixpacket"})
	if err != nil {
		return nil, ErrGone
	}
	if err := sameUser(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Exec runs a command on a host of the network at address, with the standard streams and the
// environment of this process, and returns its exit code. It forwards signals that would end this
// process. When ctx is done it stops waiting.
func Exec(ctx context.Context, address, host string, args []string) (code int, err error) {
	return ask(ctx, address, request{Host: host, Args: args, Env: append(os.Environ(), "P4LB_HOST="+host)})
}

// Ask calls the process at address, with the standard streams of this process, and returns the
// exit code. Signals that would end this process, and the end of ctx, end the call.
func Ask(ctx context.Context, address string, args []string) (code int, err error) {
	return ask(ctx, address, request{Call: true, Args: args})
}

func ask(ctx context.Context, address string, r request) (code int, err error) {
	c, err := dial(address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if r.Dir, err = os.Getwd(); err != nil {
		return 0, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	if len(text) > maxRequest {
		return 0, fmt.Errorf("command and environment have %d bytes: want at most %d", len(text), maxRequest)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGWINCH)
	defer signal.Stop(signals)
	if _, _, err := c.WriteMsgUnix(text, unix.UnixRights(0, 1, 2), nil); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrGone, err)
	}
	type result struct {
		answer
		err error
	}
	ended := make(chan result, 1)
	go func() {
		buf := make([]byte, 4096)
		n, err := c.Read(buf)
		r := result{err: err}
		if err == nil && n == 0 {
			r.err = ErrGone
		} else if err == nil {
			r.err = json.Unmarshal(buf[:n], &r.answer)
		}
		ended <- r
	}()
	for {
		select {
		case s := <-signals:
			text, _ := json.Marshal(note{int(s.(syscall.Signal))})
			c.Write(text)
		case <-ctx.Done():
			return 0, ctx.Err()
		case r := <-ended:
			switch {
			case r.err != nil:
				return 0, ErrGone
			case r.Error != "":
				return r.Exit, errors.New(r.Error)
			}
			return r.Exit, nil
		}
	}
}

// A Sockets creates sockets on the hosts of the network at a door.
type Sockets struct {
	mu sync.Mutex
	c  *net.UnixConn
}

// Knock connects to a door.
func Knock(address string) (*Sockets, error) {
	c, err := dial(address)
	if err != nil {
		return nil, err
	}
	return &Sockets{c: c}, nil
}

// Socket opens a TCP socket on a host. The caller owns the returned file descriptor.
func (s *Sockets) Socket(host string) (int, error) { return s.socket(request{Host: host}) }

// Datagrams opens a UDP socket on a host. The caller owns the returned file descriptor.
func (s *Sockets) Datagrams(host string) (int, error) {
	return s.socket(request{Host: host, UDP: true})
}

func (s *Sockets) socket(ask request) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.Marshal(ask)
	if err != nil {
		return 0, err
	}
	if _, err := s.c.Write(text); err != nil {
		return 0, ErrGone
	}
	buf, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := s.c.ReadMsgUnix(buf, control)
	if err != nil || n == 0 {
		return 0, ErrGone
	}
	var a answer
	if err := json.Unmarshal(buf[:n], &a); err != nil {
		return 0, err
	}
	if a.Error != "" {
		return 0, errors.New(a.Error)
	}
	messages, err := unix.ParseSocketControlMessage(control[:m])
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(ErrGone, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, errors.Join(ErrGone, err)
	}
	unix.CloseOnExec(fds[0])
	return fds[0], nil
}

// Close closes the connection. Created sockets stay valid.
func (s *Sockets) Close() error { return s.c.Close() }
