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

// The limits that --limit sets, as the help has them.
const limitHelp = `What clients can make the switch hold is limited. --limit NAME=N sets

  connections    P4Runtime connections at a time (1024, or what open files allow);
                 as many again may wait that have said nothing yet
  thrift         Thrift connections at a time (64, likewise)
  calls          requests and streams of all P4Runtime clients at a time (8192)
  reads          reads among them (1024)
  streams        requests and streams of a connection (1024)
  controllers    streams of a role (1024)
  roles          roles that are remembered (256)
  message        bytes of a message (67108864)
  incoming       bytes of all large messages that are coming or being answered
                 (134217728); one waits for room, and if none comes the connection
                 whose message is unfinished for longest is closed
  entity         bytes of an entity or a role config (1048576)
  updates        updates of a write (131072)
  requests       requests of a read (32768)
  pending        bytes of notifications that a client has not received (16777216);
                 packets, digests and idle timeouts beyond them are lost
  stall          how long a client may not take the answer to a read (30s)`

// limits are what --limit says.
type limits struct {
	list   []string
	server gate.Limits
	thrift int
}

// check reads the flags.
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

// spareFiles is how many files a switch has open beside its connections.
const spareFiles = 32

// fitFiles leaves room for ports and files where only few may be open: a flood
// of connections then takes nothing that the switch needs itself. There may be as many
// newcomers to P4Runtime as connections.
func (l *limits) fitFiles() error {
	files := maxFiles()
	if room := files - spareFiles; room < 4 {
		return fmt.Errorf("only %d files may be open (ulimit -n): want at least %d", files, spareFiles+4)
	}
	half := (files - spareFiles) / 2
	if l.server.MaxConnections == 0 {
		l.server.MaxConnections = min(1024, half/2)
	}
	l.thrift = cmp.Or(l.thrift, min(thrift.MaxConnections, half))
	if 2*l.server.MaxConnections+l.thrift > files-spareFiles {
		return errors.New("--limit connections and thrift: " +
			fmt.Sprintf("only %d files may be open (ulimit -n), %d of them for connections", files, files-spareFiles))
	}
	return nil
}
