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

// DeviceOptions are what a device is made of. Without more than Load it is a
// device without CPU port, with simple_switch's queues.
type DeviceOptions struct {
	// CPUPort is the port behind which the controllers are; 0 is none, or where
	// CPUZero is set the port of that number, as Tofino 2 has it.
	CPUPort uint32
	CPUZero bool
	// DropPort is the egress_spec that drops; 0 stands for 511.
	DropPort uint32
	// Priorities is the number of queues per port; 0 stands for 1.
	Priorities int
	// Rate is the rate of each queue in packets per second; 0 is no limit.
	Rate uint64
	// Depth is the capacity of each queue in packets; 0 stands for 64.
	Depth int
	// Seed begins the switch's random numbers.
	Seed uint64
	// Load links a program, which is the p4_device_config of a pipeline config:
	// BMv2 JSON, if it is bmv2.Load and dataplane.New. It must be set.
	Load func(program []byte, o dataplane.Options) (*dataplane.Switch, error)
	// Trace gets what happens to packets, Log the lines of log_msg. Neither
	// may call the device.
	Trace func(dataplane.Event)
	Log   func(line string)
	// CPUIsPort lets the CPU port be one with an interface, as a chip has it.
	CPUIsPort bool
}

// A Port moves packets between a device and what is outside.
type Port interface {
	// Receive hands on the packets that come in, some at a time, until the
	// port is closed, which is no error. The packets are the port's again once
	// deliver returns.
	Receive(deliver func(packets [][]byte)) error
	// Send takes a packet to send; it is the caller's again when Send returns.
	// It may wait for Flush.
	Send(packet []byte)
	// Flush sees to it that what Send has taken is sent.
	Flush() error
	// Close ends Receive.
	Close() error
}

// A Device is a switch in real time: a program, ports, and the clock and the
// chance that the data plane itself does without.
type Device struct {
	opts  DeviceOptions
	start time.Time
	wake  chan struct{} // for the pacer: something is queued
	done  chan struct{}
	work  sync.WaitGroup // all goroutines
	inlet sync.WaitGroup // those that receive
	close sync.Once

	// mu keeps packets and changes that must look like one apart. Whoever
	// holds it waits for nobody but the data plane.
	mu       sync.Mutex
	engine   *dataplane.Engine // nil before the first program
	program  []byte
	packetIn func(frame []byte)
	ports    map[uint32]*attached
	counts   map[uint32]*bmv2.PortCounts // of ports that are or were there, or packets were for
	dirty    []*attached                 // that have something to flush
	queueing []queueSetting
	bitRates map[uint32]uint64 // of ports that send as a link does
	off      map[uint32]bool   // ports that are told to be silent

	came    atomic.Int64                    // when packets came last, by now
	down    atomic.Pointer[map[uint32]bool] // of the ports that are there
	changed func()                          // a port went up or down
}

// An attached port is one with its number.
type attached struct {
	Port
	number uint32
	dirty  bool
	failed func(error) // hears of the first error in sending
	counts *bmv2.PortCounts
}

// NewDevice makes a device without program.
func NewDevice(o DeviceOptions) (*Device, error) {
	if o.CPUPort > maxPort || o.DropPort > maxPort {
		return nil, fmt.Errorf("CPU port %d or drop port %d is above %d", o.CPUPort, o.DropPort, maxPort)
	}
	if o.Load == nil {
		return nil, errors.New("a device wants a function that loads programs")
	}
	if o.Depth < 0 || o.Priorities < 0 {
		return nil, errors.New("depth and priorities cannot be negative")
	}
	d := &Device{
		opts: o, start: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{}),
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

// now is the time of the data plane: that since the device was made.
func (d *Device) now() time.Duration { return time.Since(d.start) }

// Elapsed is the clock of the timestamps in the data plane.
func (d *Device) Elapsed() time.Duration { return d.now() }

// CPU is the port of the copies for the CPU, which may be changed while no packet
// is processed; nil if the device has none.
func (d *Device) CPU() *uint32 {
	if !d.hasCPU() {
		return nil
	}
	return &d.opts.CPUPort
}

// Link links a program for the device, without running it.
func (d *Device) Link(program []byte, digest func(dataplane.Digest)) (*dataplane.Switch, error) {
	return d.opts.Load(program, dataplane.Options{
		CPU:      d.CPU(),
		DropPort: int(d.opts.DropPort), Priorities: d.opts.Priorities,
		Random: dataplane.Uniform(rand.NewPCG(d.opts.Seed, d.opts.Seed)),
		Digest: digest, Log: d.opts.Log, Trace: d.opts.Trace,
		Dropped: func(port uint32, why bmv2.DropReason) { d.countsOf(port).Drops[why]++ },
	})
}

// run sends packets through another program. Queues keep their rates and
// depths; packets in them are lost.
func (d *Device) run(sw *dataplane.Switch, program []byte, packetIn func([]byte)) {
	d.replace(dataplane.NewEngine(sw), program, packetIn)
}

func (d *Device) replace(e *dataplane.Engine, program []byte, packetIn func([]byte)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.program, d.packetIn, d.engine = program, packetIn, e
	d.engine.Queues(func(q *dataplane.Queues) {
		for _, s := range d.queueing {
			s.apply(q) // has been checked
		}
		for port, bits := range d.bitRates {
			q.SetBitRate(port, bits)
		}
	})
}

// A NewPort is a port to connect. Failed hears of the error that ends receiving and
// of the first one in sending; nil ignores them.
type NewPort struct {
	Number uint32
	Port   Port
	Failed func(error)
}

// AddPort connects a port and begins to receive from it, as AddPorts does.
func (d *Device) AddPort(number uint32, p Port, failed func(error)) error {
	return d.AddPorts(NewPort{number, p, failed})
}

// AddPorts connects ports, or after a mistake none of them. No packet comes in before
// all are there: the first may be for the last.
func (d *Device) AddPorts(list ...NewPort) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	given := map[uint32]bool{}
	for _, p := range list {
		switch {
		case p.Number > maxPort:
			return fmt.Errorf("port %d is above %d", p.Number, maxPort)
		case d.ports[p.Number] != nil || given[p.Number]:
			return fmt.Errorf("port %d is there already", p.Number)
		case d.hasCPU() && p.Number == d.opts.CPUPort && !d.opts.CPUIsPort:
			return fmt.Errorf("port %d is the CPU port", p.Number)
		}
		given[p.Number] = true
	}
	for _, p := range list {
		d.ports[p.Number] = &attached{Port: p.Port, number: p.Number, failed: p.Failed, counts: d.countsOf(p.Number)}
		d.setDown(p.Number, false)
	}
	for _, p := range list { // what they receive waits for d.mu
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
	return nil
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

// PortNumbers are the ports that are connected.
func (d *Device) PortNumbers() []uint32 { return slices.Sorted(maps.Keys(*d.down.Load())) }

// PortUp reports whether a port is there and has a link.
func (d *Device) PortUp(number uint32) bool {
	down, there := (*d.down.Load())[number]
	return there && !down
}

// setDown notes the state of a port. The caller holds d.mu.
func (d *Device) setDown(number uint32, down bool) {
	next := maps.Clone(*d.down.Load())
	next[number] = down
	d.down.Store(&next)
}

// SetPortUp tells the device whether a port has a link. Groups that watch it
// leave its members out while it has none.
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
	return !queued
}

func (d *Device) portExists(number uint32) bool {
	_, there := (*d.down.Load())[number]
	return there
}

func (d *Device) hasCPU() bool { return d.opts.CPUPort != 0 || d.opts.CPUZero }

// receive processes packets that have come in at a port.
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

// Busy reports whether packets are coming.
func (d *Device) Busy() bool { return d.now()-time.Duration(d.came.Load()) < recently }

// inject processes a packet from the controllers.
func (d *Device) inject(packet []byte) { d.receive(d.opts.CPUPort, [][]byte{packet}) }

// emit sends what the data plane has let go.
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
	if _, ok := d.engine.Next(); ok {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

// pace lets packets go whose time has come, where queues have a rate.
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

// runDue does what is due and returns how long it is until something else is.
func (d *Device) runDue() (wait time.Duration, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == nil {
		return 0, false
	}
	d.emit(d.engine.Run(d.now()))
	d.settle()
	at, ok := d.engine.Next()
	return at - d.now(), ok
}

// The runtime's timers are late by up to a millisecond; shorter waits are left
// to the kernel, in steps, since something may become due earlier.
const (
	coarse = 2 * time.Millisecond
	fine   = 100 * time.Microsecond
)

// pause waits, at most until the next packet may be due. It reports false when
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

// Drain waits until no port receives any more, as happens when all play
// captures, and until no packet is queued.
func (d *Device) Drain() {
	d.inlet.Wait()
	for {
		wait, ok := d.runDue()
		if !ok || !d.pause(wait) {
			return
		}
	}
}

// Close closes the ports and waits until nothing moves any more.
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

// Switch is the data plane of the program that packets go through, nil before
// the first one. A simulator may send packets of its own through it, as long as
// the device has no ports: what the controllers write concerns them at once.
func (d *Device) Switch() *dataplane.Switch {
	sw, _ := d.running()
	return sw
}

// Queue returns the rate and the depth of the queues of a port as they have
// been set for it; false where they have not, both.
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

// countsOf are the counts of a port, which begin with the first packet that has
// to do with it. The caller holds d.mu.
func (d *Device) countsOf(port uint32) *bmv2.PortCounts {
	c := d.counts[port]
	if c == nil {
		c = &bmv2.PortCounts{Port: int(port)}
		d.counts[port] = c
	}
	return c
}
