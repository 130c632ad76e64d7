package serve

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/server/gate"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

// limitHelp documents the limits of --limit in the help text.
const limitHelp = `--limit NAME=N sets one of the limits on the resources of clients:

  connections    P4Runtime connections at a time (1024, or fewer if the process may
                 open fewer files); as many more may wait before they send data
  thrift         Thrift connections at a time (64, or fewer for the same reason)
  calls          requests and streams of all P4Runtime clients at a time (8192)
  reads          reads among them (1024)
  streams        requests and streams of a connection (1024)
  controllers    streams of a role (1024)
  roles          roles that the switch remembers (256)
  message        bytes of a message (67108864)
  incoming       bytes of all large messages in progress (134217728); a message
                 waits for space; if none becomes free, the switch closes the
                 connection with the oldest incomplete message
  entity         bytes of an entity or a role config (1048576)
  updates        updates of a write (131072)
  requests       requests of a read (32768)
  pending        bytes of queued notifications of a client (16777216); the switch
                 drops packets, digests and idle timeouts beyond them
  stall          longest time that a client may not accept the answer to a read (30s)`

// limits are the parsed values of --limit.
type limits struct {
	list   []string
	server gate.Limits
	thrift int
}

// check parses the flags.
func (l *limits) check() error {
	s := &l.server
	places := map[string]*int{
		"connections": &s.MaxConnections, "thrift": &l.thrift, "calls": &s.MaxCalls, "reads": &s.MaxReads, "streams": &s.MaxStreams,
		"controllers": &s.MaxControllers, "roles": &s.MaxRoles, "message": &s.MaxMessage, "incoming": &s.MaxIncoming, "entity": &s.MaxEntity,
		"updates": &s.MaxUpdates, "requests": &s.MaxRequests, "pending": &s.MaxPending,
	}
	for _, text := range l.list {
		name, value, _ := strings.Cut(text, "=")
		if name == "stall" {
			d, err := time.ParseDuration(value)
			if err != nil || d <= 0 {
				return fmt.Errorf("--limit %s: want a positive time such as 30s", text)
			}
			s.MaxStall = d
			continue
		}
		place := places[name]
		if place == nil {
			names := slices.AppendSeq([]string{"stall"}, maps.Keys(places))
			slices.Sort(names)
			return fmt.Errorf("--limit %s: want one of %s", text, strings.Join(names, ", "))
		}
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n <= 0 {
			return fmt.Errorf("--limit %s: want a number from 1 to %d", text, 1<<31-1)
		}
		*place = int(n)
	}
	return l.fitFiles()
}

// spareFiles is the number of files that a switch opens besides its
// connections.
const spareFiles = 32

// fitFiles chooses the default connection limits so that connections never
// exhaust the open files of the process, as ports and files need some.
// P4Runtime counts twice: as many new connections may wait as are active.
func (l *limits) fitFiles() error {
	files := maxFiles()
	if room := files - spareFiles; room < 4 {
		return fmt.Errorf("the process may open only %d files (ulimit -n): want at least %d", files, spareFiles+4)
	}
	half := (files - spareFiles) / 2
	if l.server.MaxConnections == 0 {
		l.server.MaxConnections = min(1024, half/2)
	}
	l.thrift = cmp.Or(l.thrift, min(thrift.MaxConnections, half))
	if 2*l.server.MaxConnections+l.thrift > files-spareFiles {
		return errors.New("--limit connections and thrift: " +
			fmt.Sprintf("the process may open only %d files (ulimit -n), %d of them for connections", files, files-spareFiles))
	}
	return nil
}
