package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// The ports of a switch's servers. They are constant, because each switch has its
// own address.
const (
	grpcPort   = "9559"
	thriftPort = "9090"
)

// startTime is the time limit for a switch's servers to answer after its start.
const startTime = 20 * time.Second

// A node is a switch.
type node struct {
	bed    *bed
	plan   *plan.Switch
	ports  []fabric.Port
	grpc   string
	thrift string
	remote *target.Thrift

	mu      sync.Mutex
	process *process         // nil: none
	senders map[int]*os.File // sockets at the far ends of ports
}

// inject makes a frame arrive at a port by sending it from the other end of the link.
func (n *node) inject(port int, frame []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.senders[port]
	if s == nil {
		i := slices.IndexFunc(n.ports, func(p fabric.Port) bool { return p.Number == port })
		if i < 0 {
			return fmt.Errorf("there is no port %d", port)
		}
		far := n.ports[i]
		space, err := netspace.Open(namespace(n.bed.name, far.Peer))
		if err != nil {
			return err
		}
		defer space.Close()
		name := netspace.HostPort
		if far.PeerTier > 0 {
			name = netspace.PortName(far.PeerPort)
		}
		if s, err = netspace.Sender(netspace.End{Space: space, Name: name}); err != nil {
			return err
		}
		if n.senders == nil {
			n.senders = map[int]*os.File{}
		}
		n.senders[port] = s
	}
	_, err := s.Write(frame)
	return err
}

// hangUp closes the sockets at the far ends.
func (n *node) hangUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.senders {
		s.Close()
	}
	n.senders = nil
}

// A process is a running switch. A switch that an earlier p4lb process started is not
// a child of this one, so its end cannot be awaited.
type process struct {
	pid   int
	cpu   string        // value of its --cpu-port
	ended chan struct{} // closed when a child has ended; nil for others
}

// findProcesses finds running switches.
func (b *bed) findProcesses() error {
	spaces := lists.Map(b.switches, func(n *node) string { return namespace(b.name, n.plan.Name) })
	running, err := processes(spaces)
	if err != nil {
		return err
	}
	for i, n := range b.switches {
		for _, r := range running {
			if r.space == spaces[i] {
				// The command line of the process, at least one word.
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.pid)) // empty if the process has ended
				args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
				if filepath.Base(args[0]) == filepath.Base(n.bed.o.Program) {
					n.process = &process{pid: r.pid, cpu: args[len(args)-1]}
					if known := n.bed.note.Queues[n.plan.Name]; known.PID == r.pid {
						n.remote.Assume(known.Queues)
					}
				}
			}
		}
	}
	return nil
}

func (n *node) pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return 0
	}
	return n.process.pid
}

func (n *node) alive() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil && n.process.alive()
}

// fits reports whether the switch runs with the plan's options.
func (n *node) fits() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil && n.process.alive() && n.process.cpu == n.cpu()
}

// cpu returns the switch's last argument.
func (n *node) cpu() string { return strconv.Itoa(n.plan.CPUPort) }

func (p *process) alive() bool {
	if p.ended == nil {
		return inodeOf(p.pid) != 0
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// stop kills the switch and waits for its end.
func (n *node) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return
	}
	if n.process.alive() {
		unix.Kill(n.process.pid, unix.SIGKILL)
	}
	for n.process.alive() {
		time.Sleep(pollEvery)
	}
	n.process = nil
}

// start starts the switch, without a program, and waits until it answers.
func (n *node) start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.remote.Forget()
	p, err := n.launch()
	if err != nil {
		return &plan.Error{Switch: n.plan.Name, Err: err}
	}
	n.process = p
	return n.awaitAll(ctx)
}

// ready waits until a running switch answers. The process that started it may have
// ended before the switch was ready.
func (n *node) ready(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.awaitAll(ctx)
}

// awaitAll waits until both servers answer.
func (n *node) awaitAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for _, address := range []string{n.grpc, n.thrift} {
		if err := n.await(ctx, n.process, address); err != nil {
			return &plan.Error{Switch: n.plan.Name, Err: err, Hint: "its output is in " + n.logFile()}
		}
	}
	return nil
}

func (n *node) logFile() string { return filepath.Join(dir(n.bed.name), n.plan.Name+".log") }

// args returns the command line for starting the switch.
func (n *node) args() []string {
	args := []string{
		"--no-p4", "--device-id", strconv.FormatUint(n.plan.Device, 10), "--thrift-port", thriftPort,
	}
	if !n.bed.o.silent {
		args = append(args, "--notifications-addr", "ipc://"+filepath.Join(dir(n.bed.name), n.plan.Name+".ipc"))
	}
	for _, p := range n.ports {
		args = append(args, "-i", fmt.Sprintf("%d@%s", p.Number, netspace.PortName(p.Number)))
	}
	args = append(args, "--", "--grpc-server-addr", n.grpc)
	if n.bed.o.Priorities > 1 {
		args = append(args, "--priority-queues", strconv.Itoa(n.bed.o.Priorities))
	}
	return append(args, "--cpu-port", n.cpu())
}

// launch starts the process in its namespace. The program ip first mounts a /sys that
// shows the namespace's interfaces, because the switch checks there whether its ports
// are up, and then executes the switch.
//
// A switch that is not to be kept ends with this process, even if it is killed: the
// kernel signals it when the thread that started it ends. The thread therefore lives
// as long as the switch.
func (n *node) launch() (*process, error) {
	log, err := os.OpenFile(n.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close()
	line := append(Shell(n.bed.name, n.plan.Name), n.bed.o.Program)
	cmd := exec.Command(line[0], append(line[1:], n.args()...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !n.bed.o.Keep {
		cmd.SysProcAttr.Pdeathsig = unix.SIGKILL
	}
	p := &process{cpu: n.cpu(), ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", n.bed.o.Program, err)
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

// errEnded reports a switch process that has ended.
var errEnded = errors.New("the switch has ended as soon as it was started")

// await waits until a server answers.
func (n *node) await(ctx context.Context, p *process, address string) error {
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("%w at %s: %w", target.ErrUnreachable, address, err)
		case <-time.After(pollEvery):
		}
	}
}
