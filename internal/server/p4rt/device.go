package p4rt

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// DeviceOptions configure a device. Only Load is required: the default is a
// device without CPU port and with the queues of simple_switch.
type DeviceOptions struct {
	// CPUPort is the port number that leads to the controllers. 0 stands for
	// none, unless CPUZero is set: Tofino 2 can use port 0.
	CPUPort uint32
	CPUZero bool
	// DropPort is the egress_spec that drops a packet; 0 stands for 511.
	DropPort uint32
	// Priorities is the number of queues per port; 0 stands for 1.
	Priorities int
	// Looped lists ports of Tofino in loopback, beside the chip's own.
	Looped []uint32
	// Rate is the rate of each queue in packets per second; 0 is no limit.
	Rate uint64
	// Depth is the capacity of each queue in packets; 0 stands for 64.
	Depth int
	// Seed seeds the switch's random numbers.
	Seed uint64
	// Load links a program, given as the p4_device_config of a pipeline config.
	// For BMv2 JSON it combines bmv2.Load and dataplane.New.
	Load func(program []byte, o dataplane.Options) (*dataplane.Switch, error)
	// Trace receives the events of packet processing, Log the lines of log_msg.
	// Neither may call the device.
	Trace func(dataplane.Event)
	Log   func(line string)
	// CPUIsPort allows AddPort to connect the CPU port, as on a chip.
	CPUIsPort bool
	// Ahead is the time of the device's clock at creation.
	Ahead time.Duration
	// Simulator, if not nil, runs the data plane.
	Simulator Simulator
}

// A Port moves packets between a device and its environment.
type Port interface {
	// Receive passes incoming packets to deliver, in batches, until the port is
	// closed; closing is not an error. The port may reuse the packets after
	// deliver returns.
	Receive(deliver func(packets [][]byte)) error
	// Send sends a packet, possibly not before Flush. The caller may reuse the
	// packet after Send returns.
	Send(packet []byte)
	// Flush sends all packets passed to Send.
	Flush() error
	// Close ends Receive.
	Close() error
}

// A Device is a switch in real time. It adds ports, a clock and a source of
// random numbers to a program of the data plane.
type Device struct {
	opts  DeviceOptions
	start time.Time
	wake  chan struct{} // wakes the pacer: a packet is queued
	done  chan struct{}
	work  sync.WaitGroup // all goroutines
	inlet sync.WaitGroup // receiving goroutines
	close sync.Once

	// mu separates packets from changes that must appear atomic. Its holder
	// waits for nothing but the data plane.
	mu      sync.Mutex
	engine  *dataplane.Engine // nil before the first program
	program []byte
	loaded  *loadedConfig // nil unless a program waits for SwapConfigs
	// finishing are the engines of swapped programs with queued packets.
	finishing []*dataplane.Engine
	packetIn  func(frame []byte)
	ports     map[uint32]*attached
	counts    map[uint32]*bmv2.PortCounts // also of removed ports, and of missing ones to which packets were sent
	dirty     []*attached                 // ports with packets to flush
	queueing  []queueSetting
	bitRates  map[uint32]uint64 // rates of ports in bits per second, where set
	off       map[uint32]bool   // ports disabled by SetPort

	came    atomic.Int64                    // when the last packets arrived, by the clock now
	down    atomic.Pointer[map[uint32]bool] // whether each connected port is down
	changed func()                          // called when a port goes up or down
	onSwap  func(swap func() bool) bool     // called by SwapConfigs; it calls swap
}

// An attached port is a connected port.
type attached struct {
	Port
	number uint32
	dirty  bool
	failed func(error) // called with the first error in sending
	counts *bmv2.PortCounts
}

// A loadedConfig is a program that waits for SwapConfigs.
type loadedConfig struct {
	sw   *dataplane.Switch
	json []byte
}

// NewDevice creates a device without program.
func NewDevice(o DeviceOptions) (*Device, error) {
	if o.CPUPort > maxPort || o.DropPort > maxPort {
		return nil, fmt.Errorf("CPU port %d or drop port %d is above %d", o.CPUPort, o.DropPort, maxPort)
	}
	if o.Load == nil {
		return nil, errors.New("device: DeviceOptions.Load is not set")
	}
	if o.Depth < 0 || o.Priorities < 0 {
		return nil, errors.New("negative queue depth or number of priorities")
	}
	d := &Device{
		opts: o, start: time.Now().Add(-o.Ahead), wake: make(chan struct{}, 1), done: make(chan struct{}),
		ports: map[uint32]*attached{}, counts: map[uint32]*bmv2.PortCounts{}, bitRates: map[uint32]uint64{},
	}
	if o.Depth > 0 {
		d.queueing = append(d.queueing, queueSetting{-1, -1, false, uint64(o.Depth)})
	}
	if o.Rate > 0 {
		d.queueing = append(d.queueing, queueSetting{-1, -1, true, o.Rate})
	}
	d.down.Store(&map[uint32]bool{})
	d.work.Go(d.pace)
	return d, nil
}

// now returns the time of the data plane, which starts at Ahead when the device is
// created, or the virtual time.
func (d *Device) now() time.Duration {
	if d.opts.Simulator != nil {
		return d.opts.Simulator.Now()
	}
	return time.Since(d.start)
}

// Simulator returns the simulator that runs the data plane, or nil.
func (d *Device) Simulator() Simulator { return d.opts.Simulator }

// Elapsed returns the clock used for timestamps in the data plane.
func (d *Device) Elapsed() time.Duration { return d.now() }

// CPU returns the CPU port, or nil if the device has none. The caller may
// change the value while no packet is processed.
func (d *Device) CPU() *uint32 {
	if !d.hasCPU() {
		return nil
	}
	return &d.opts.CPUPort
}

// Link links a program for the device without running it.
func (d *Device) Link(program []byte, digest func(dataplane.Digest)) (*dataplane.Switch, error) {
	dropped := func(port uint32, why bmv2.DropReason) { d.countsOf(port).Drops[why]++ }
	if d.opts.Simulator != nil {
		dropped = func(uint32, bmv2.DropReason) {} // the simulator counts drops
	}
	return d.opts.Load(program, dataplane.Options{
		CPU:      d.CPU(),
		DropPort: int(d.opts.DropPort), Priorities: d.opts.Priorities, Looped: d.opts.Looped,
		Random: dataplane.Uniform(rand.NewPCG(d.opts.Seed, d.opts.Seed)),
		Digest: digest, Log: d.opts.Log, Trace: d.opts.Trace,
		Dropped: dropped,
	})
}

// run sends packets through another program. Queues keep their rates and
// depths; queued packets are lost.
func (d *Device) run(sw *dataplane.Switch, program []byte, packetIn func([]byte)) {
	d.replace(dataplane.NewEngine(sw), program, packetIn)
	if d.opts.Simulator != nil {
		d.opts.Simulator.Run(sw)
	}
}

func (d *Device) replace(e *dataplane.Engine, program []byte, packetIn func([]byte)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.install(e, program, packetIn)
}

// install is replace for callers that hold d.mu.
func (d *Device) install(e *dataplane.Engine, program []byte, packetIn func([]byte)) {
	d.program, d.packetIn, d.engine, d.loaded, d.finishing = program, packetIn, e, nil, nil
	d.engine.Queues(func(q *dataplane.Queues) {
		for _, s := range d.queueing {
			s.apply(q) // SetQueueRate and SetQueueDepth have checked it
		}
		for port, bits := range d.bitRates {
			q.SetBitRate(port, bits)
		}
	})
}

// A NewPort is a port to connect. Failed is called with the error that ends
// receiving and with the first error in sending; it may be nil.
type NewPort struct {
	Number uint32
	Port   Port
	Failed func(error)
}

// AddPort connects one port; see AddPorts.
func (d *Device) AddPort(number uint32, p Port, failed func(error)) error {
	return d.AddPorts(NewPort{number, p, failed})
}

// AddPorts connects ports and starts receiving. If one of them is invalid, it
// connects none. It connects all ports before it receives a packet, which may
// be for the last one.
func (d *Device) AddPorts(list ...NewPort) error {
	changed, err := d.addPorts(list)
	if err == nil && changed != nil {
		changed()
	}
	return err
}

func (d *Device) addPorts(list []NewPort) (changed func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	given := map[uint32]bool{}
	for _, p := range list {
		switch {
		case p.Number > maxPort:
			return nil, fmt.Errorf("port %d is above %d", p.Number, maxPort)
		case d.ports[p.Number] != nil || given[p.Number]:
			return nil, fmt.Errorf("port %d exists already", p.Number)
		case d.hasCPU() && p.Number == d.opts.CPUPort && !d.opts.CPUIsPort:
			return nil, fmt.Errorf("port %d is the CPU port", p.Number)
		}
		given[p.Number] = true
	}
	for _, p := range list {
		d.ports[p.Number] = &attached{Port: p.Port, number: p.Number, failed: p.Failed, counts: d.countsOf(p.Number)}
		d.setDown(p.Number, false)
	}
	for _, p := range list { // received packets wait for d.mu
		if l, ok := p.Port.(interface{ OnLink(func(up bool)) }); ok {
			l.OnLink(func(up bool) { d.SetPortUp(p.Number, up) })
		}
		d.inlet.Add(1)
		d.work.Go(func() {
			defer d.inlet.Done()
			err := p.Port.Receive(func(packets [][]byte) { d.receive(p.Number, packets) })
			if err != nil && p.Failed != nil {
				p.Failed(err)
			}
		})
	}
	return d.changed, nil
}

// RemovePort disconnects a port.
func (d *Device) RemovePort(number uint32) error {
	d.mu.Lock()
	p := d.ports[number]
	if p == nil {
		d.mu.Unlock()
		return fmt.Errorf("there is no port %d", number)
	}
	delete(d.ports, number)
	d.dirty = slices.DeleteFunc(d.dirty, func(a *attached) bool { return a == p })
	next := maps.Clone(*d.down.Load())
	delete(next, number)
	d.down.Store(&next)
	changed := d.changed
	d.mu.Unlock()
	err := p.Close()
	if changed != nil {
		changed()
	}
	return err
}

// PortNumbers returns the connected ports in order.
func (d *Device) PortNumbers() []uint32 { return slices.Sorted(maps.Keys(*d.down.Load())) }

// PortUp reports whether a port is connected and its link is up.
func (d *Device) PortUp(number uint32) bool {
	down, there := (*d.down.Load())[number]
	return there && !down
}

// setDown records the link state of a port. The caller holds d.mu.
func (d *Device) setDown(number uint32, down bool) {
	next := maps.Clone(*d.down.Load())
	next[number] = down
	d.down.Store(&next)
}

// SetPortUp sets the link state of a port. Groups skip members with a watched
// port that is down.
func (d *Device) SetPortUp(number uint32, up bool) {
	d.mu.Lock()
	down, there := (*d.down.Load())[number]
	d.setDown(number, !up)
	changed := d.changed
	d.mu.Unlock()
	if changed != nil && (!there || down == up) {
		changed()
	}
}

// Idle reports whether no packet is queued.
func (d *Device) Idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == nil {
		return true
	}
	_, queued := d.engine.Next()
	return !queued && len(d.finishing) == 0
}

func (d *Device) portExists(number uint32) bool {
	_, there := (*d.down.Load())[number]
	return there
}

func (d *Device) hasCPU() bool { return d.opts.CPUPort != 0 || d.opts.CPUZero }

// receive processes packets received on a port.
func (d *Device) receive(port uint32, packets [][]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == nil || d.off[port] {
		return
	}
	if a := d.ports[port]; a != nil {
		a.counts.InPackets += uint64(len(packets))
		for _, p := range packets {
			a.counts.InBytes += uint64(len(p))
		}
	}
	for _, p := range packets {
		d.emit(d.engine.Process(port, p, d.now()))
	}
	d.came.Store(int64(d.now()))
	d.settle()
}

// Busy reports whether packets have arrived recently.
func (d *Device) Busy() bool { return d.now()-time.Duration(d.came.Load()) < recently }

// inject processes a packet from the controllers.
func (d *Device) inject(packet []byte) {
	if d.opts.Simulator != nil {
		d.opts.Simulator.PacketOut(packet)
		return
	}
	d.receive(d.opts.CPUPort, [][]byte{packet})
}

// PacketIn sends a frame of the simulated CPU port to the controllers, which get a copy.
func (d *Device) PacketIn(frame []byte) {
	d.mu.Lock()
	f := d.packetIn
	d.mu.Unlock()
	if f != nil {
		f(append([]byte(nil), frame...))
	}
}

// Inject processes a frame as one that arrived at a port.
func (d *Device) Inject(port int, frame []byte) error {
	if port < 0 || !d.portExists(uint32(port)) && (!d.hasCPU() || uint32(port) != d.opts.CPUPort) {
		return fmt.Errorf("there is no port %d", port)
	}
	d.receive(uint32(port), [][]byte{frame})
	return nil
}

// emit sends the packets that have left the data plane.
func (d *Device) emit(list []dataplane.Out) {
	for _, o := range list {
		if d.packetIn != nil && d.hasCPU() && o.Port == d.opts.CPUPort {
			d.packetIn(append([]byte(nil), o.Data...))
			continue
		}
		p := d.ports[o.Port]
		if p == nil || d.off[o.Port] {
			d.countsOf(o.Port).Drops[bmv2.DropNoPort]++
			continue
		}
		p.Send(o.Data)
		p.counts.OutPackets++
		p.counts.OutBytes += uint64(len(o.Data))
		if !p.dirty {
			p.dirty = true
			d.dirty = append(d.dirty, p)
		}
	}
}

// settle flushes the ports and wakes the pacer if packets are still queued.
func (d *Device) settle() {
	for _, p := range d.dirty {
		p.dirty = false
		if err := p.Flush(); err != nil && p.failed != nil {
			p.failed(err)
			p.failed = nil
		}
	}
	d.dirty = d.dirty[:0]
	if _, ok := d.engine.Next(); ok || len(d.finishing) > 0 {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

// pace releases packets from rate-limited queues when they are due.
func (d *Device) pace() {
	for {
		wait, ok := d.runDue()
		if !ok {
			select {
			case <-d.wake:
			case <-d.done:
				return
			}
			continue
		}
		if !d.pause(wait) {
			return
		}
	}
}

// runDue processes due packets and returns the time until the next event.
func (d *Device) runDue() (wait time.Duration, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == nil {
		return 0, false
	}
	for _, e := range append(d.finishing, d.engine) {
		d.emit(e.Run(d.now()))
	}
	d.settle()
	at, ok := d.engine.Next()
	d.finishing = slices.DeleteFunc(d.finishing, func(e *dataplane.Engine) bool {
		due, queued := e.Next()
		if queued && (!ok || due < at) {
			at, ok = due, true
		}
		return !queued
	})
	return at - d.now(), ok
}

// Timers of the Go runtime are up to a millisecond late. Shorter waits sleep in
// the kernel, in steps of fine, because an earlier event may be added
// meanwhile.
const (
	coarse = 2 * time.Millisecond
	fine   = 100 * time.Microsecond
)

// pause waits at most until the next packet may be due. It returns false when
// the device is closed.
func (d *Device) pause(wait time.Duration) bool {
	select {
	case <-d.done:
		return false
	default:
	}
	if wait < coarse {
		Nap(min(wait, fine))
		return true
	}
	t := time.NewTimer(wait - coarse/2)
	defer t.Stop()
	select {
	case <-t.C:
	case <-d.wake:
	case <-d.done:
		return false
	}
	return true
}

// Drain waits until all ports have stopped receiving, for example at the end of
// their captures, and all queues are empty.
func (d *Device) Drain() {
	d.inlet.Wait()
	for {
		wait, ok := d.runDue()
		if !ok || !d.pause(wait) {
			return
		}
	}
}

// Close closes the ports and waits for all goroutines.
func (d *Device) Close() (err error) {
	d.close.Do(func() {
		d.mu.Lock()
		close(d.done)
		var errs []error
		for _, p := range d.ports {
			errs = append(errs, p.Close())
		}
		d.mu.Unlock()
		d.work.Wait()
		err = errors.Join(errs...)
	})
	return err
}

var errNoProgram = errors.New("the switch has no program yet")

// running returns the program that processes packets.
func (d *Device) running() (*dataplane.Switch, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == nil {
		return nil, errNoProgram
	}
	return d.engine.Switch(), nil
}

// controlled returns the program that waits for SwapConfigs, or else the running
// one.
func (d *Device) controlled() (*dataplane.Switch, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.loaded != nil:
		return d.loaded.sw, nil
	case d.engine == nil:
		return nil, errNoProgram
	}
	return d.engine.Switch(), nil
}

// Switch returns the running program in the data plane, or nil. A simulator may
// send its own packets through it as long as the device has no ports.
// Controllers' writes affect them immediately.
func (d *Device) Switch() *dataplane.Switch {
	sw, _ := d.running()
	return sw
}

// Control returns the program that requests over Thrift refer to: the loaded one
// until SwapConfigs, otherwise the running one.
func (d *Device) Control() *dataplane.Switch {
	sw, _ := d.controlled()
	return sw
}

// Queue returns the rate and the depth set for the queues of a port. ok is
// false unless both have been set.
func (d *Device) Queue(port int) (packetsPerSecond uint64, depth int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var rate, room bool
	for _, s := range d.queueing {
		switch {
		case s.port != port:
		case s.rate:
			packetsPerSecond, rate = s.value, true
		default:
			depth, room = int(s.value), true
		}
	}
	return packetsPerSecond, depth, rate && room
}

// countsOf returns the counts of a port and creates them if necessary. The
// caller holds d.mu.
func (d *Device) countsOf(port uint32) *bmv2.PortCounts {
	c := d.counts[port]
	if c == nil {
		c = &bmv2.PortCounts{Port: int(port)}
		d.counts[port] = c
	}
	return c
}
