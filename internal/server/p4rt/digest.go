package p4rt

import (
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// maxDigests bounds a list if the client sets no bound, maxUnacked the number
// of records waiting for an acknowledgement.
const (
	maxDigests = 1024
	maxUnacked = 1 << 16
)

// A sentList waits for its acknowledgement until the timeout.
type sentList struct {
	records []string
	until   time.Time
}

func newDigester(id uint32, info *digestInfo, send func(*p4v1.DigestList)) *digester {
	return &digester{id: id, info: info, send: send, known: map[string]uint64{}, lists: map[uint64]*sentList{}}
}

// configure enables or reconfigures the digest; nil disables it.
func (d *digester) configure(c *p4v1.DigestEntry_Config) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.config = c
	if c != nil {
		d.flushIfDue()
		return
	}
	d.stopTimer()
	d.pending, d.order = nil, nil
	clear(d.known)
	clear(d.lists)
}

func (d *digester) stopTimer() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// learn adds a record from the data plane.
func (d *digester) learn(data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.config == nil {
		return
	}
	d.expire(time.Now())
	if _, ok := d.known[string(data)]; ok || len(d.known) >= maxUnacked {
		return
	}
	record := string(data)
	d.known[record] = 0
	d.pending = append(d.pending, record)
	d.flushIfDue()
}

// flushIfDue sends the pending records, or starts the timer to send them later.
func (d *digester) flushIfDue() {
	limit := int(d.config.GetMaxListSize())
	if limit <= 0 || limit > maxDigests {
		limit = maxDigests
	}
	switch {
	case len(d.pending) == 0:
	case len(d.pending) >= limit || d.config.GetMaxTimeoutNs() <= 0:
		d.flush()
	case d.timer == nil:
		var t *time.Timer
		t = time.AfterFunc(time.Duration(d.config.GetMaxTimeoutNs()), func() { d.timeout(&t) })
		d.timer = t
	}
}

// timeout is called by a timer, which may have fired although it was stopped.
func (d *digester) timeout(t **time.Timer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == *t && d.config != nil && len(d.pending) > 0 {
		d.flush()
	}
}

func (d *digester) flush() {
	d.stopTimer()
	d.last++
	list := &p4v1.DigestList{DigestId: d.id, ListId: d.last, Timestamp: time.Now().UnixNano()}
	for _, record := range d.pending {
		list.Data = append(list.Data, d.info.message([]byte(record)))
	}
	if wait := time.Duration(d.config.GetAckTimeoutNs()); wait > 0 {
		d.lists[d.last] = &sentList{d.pending, time.Now().Add(wait)}
		d.order = append(d.order, d.last)
		for _, record := range d.pending {
			d.known[record] = d.last
		}
	} else {
		for _, record := range d.pending {
			delete(d.known, record)
		}
	}
	d.pending = nil
	d.send(list)
}

// expire forgets lists without acknowledgement after their timeout.
func (d *digester) expire(now time.Time) {
	for len(d.order) > 0 {
		l := d.lists[d.order[0]]
		if l != nil && now.Before(l.until) {
			return
		}
		d.forget(d.order[0])
		d.order = d.order[1:]
	}
}

// acknowledge forgets a list, so its records can be learned again.
func (d *digester) acknowledge(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(id)
}

func (d *digester) forget(id uint64) {
	l := d.lists[id]
	if l == nil {
		return
	}
	delete(d.lists, id)
	for _, record := range l.records {
		delete(d.known, record)
	}
}

// message converts a record into the digest's type. Each field of a record
// occupies whole bytes.
func (d *digestInfo) message(record []byte) *p4v1.P4Data {
	return d.data.build(func(t *dataType) []uint64 {
		n := min((t.width+7)/8, len(record))
		words := num.OfBytes(record[:n], max(1, (t.width+63)/64))
		record = record[n:]
		return words
	})
}

func (p *pipeline) writeDigest(j *journal, typ p4v1.Update_Type, m *p4v1.DigestEntry) error {
	d := p.digests[m.GetDigestId()]
	if d == nil {
		return failf(codes.InvalidArgument, "there is no digest %#x", m.GetDigestId())
	}
	before := d.current()
	if err := existence(typ, before != nil, "configuration of digest", m.GetDigestId()); err != nil {
		return err
	}
	c := m.GetConfig()
	switch {
	case typ == p4v1.Update_DELETE:
		c = nil
	case c == nil:
		c = &p4v1.DigestEntry_Config{}
	case min(c.GetMaxTimeoutNs(), c.GetAckTimeoutNs(), int64(c.GetMaxListSize())) < 0:
		return failf(codes.InvalidArgument, "digest %s: the configuration has a negative number", d.info.name)
	}
	d.configure(c)
	j.add(func() { d.configure(before) })
	return nil
}

func (d *digester) current() *p4v1.DigestEntry_Config {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.config
}

// onDigest passes a record from the data plane to its digest.
func (p *pipeline) onDigest(r dataplane.Digest) {
	if d := p.digestByName[r.List]; d != nil {
		d.learn(r.Data)
	}
}
