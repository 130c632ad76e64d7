package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
)

// namespaceDir is the folder with the names of network namespaces, as used by the program ip.
const namespaceDir = "/run/netns"

// complete reports whether all nodes of the topology have their namespace, and
// all links their ends.
func complete(name string, t *fabric.Topology) bool {
	for _, node := range nodes(t) {
		s, err := netspace.Open(namespace(name, node))
		if err != nil {
			return false
		}
		there := hasEnds(t, node, s)
		s.Close()
		if !there {
			return false
		}
	}
	return true
}

// hasEnds reports whether a node has the interfaces that the topology requires.
func hasEnds(t *fabric.Topology, node string, s *netspace.Space) bool {
	list, err := s.LinkList()
	if err != nil {
		return false
	}
	has := map[string]bool{}
	for _, l := range list {
		has[l.Attrs().Name] = true
	}
	if t.Switch(node) != nil && !has[mgmtPort] {
		return false
	}
	for _, l := range t.Links {
		for _, e := range []fabric.End{l.A, l.B} {
			if e.Node == node && !has[netspace.EndOf(t, e, 0).Name] {
				return false
			}
		}
	}
	return true
}

// inode returns the inode of a namespace, or 0 if there is none.
func inode(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	return st.Ino
}

// A resident is a process in a namespace of a deployment.
type resident struct {
	pid   int
	space string // the name of the namespace
	inode uint64 // identifies the namespace in the kernel
}

type residents []resident

// processes lists the processes in namespaces, except this one.
func processes(spaces []string) (residents, error) {
	byInode := map[uint64]string{}
	for _, s := range spaces {
		if i := inode(filepath.Join(namespaceDir, s)); i != 0 {
			byInode[i] = s
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var list residents
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		i := inodeOf(pid)
		if s, ok := byInode[i]; ok {
			list = append(list, resident{pid, s, i})
		}
	}
	return list, nil
}

// inodeOf returns the inode of a process's namespace. It returns 0 if the process
// has ended, even if it is still a zombie.
func inodeOf(pid int) uint64 { return inode(fmt.Sprintf("/proc/%d/ns/net", pid)) }

// signal sends a signal to the remaining processes, and reports whether there were any.
func (list residents) signal(s unix.Signal) (any bool) {
	for _, r := range list {
		if inodeOf(r.pid) == r.inode {
			any = true
			unix.Kill(r.pid, s)
		}
	}
	return any
}

const (
	// endTime is the time limit for processes to end by themselves.
	endTime = 2 * time.Second
	// pollEvery is the interval between checks for started or ended processes.
	pollEvery = 20 * time.Millisecond
)
