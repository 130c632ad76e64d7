package spec

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// A Flow is one transfer: so many bytes from one host to another.
type Flow struct {
	Src, Dst int // places in Topology.Hosts
	Bytes    int64
	Start    time.Duration

	// Group numbers the transfers that belong together, as the responses to one
	// request do, from 1; 0 is on its own.
	Group int
	// Class names what produced the flow.
	Class string

	Kind       string  // of transport; "": the case's
	Rate       Bitrate // of UDP
	Background bool
}

// parseFlows reads a flow list: a line "src dst bytes start_s" for each flow, or
// "src dst class port bytes start_s" as HPCC's simulator has it, with spaces or
// commas between; hosts by name, or by their place counted from 0; comments behind
// #. The first line may name the columns, or say how many flows there are.
func parseFlows(file string, text []byte, t *fabric.Topology) ([]Flow, error) {
	places := map[string]int{}
	for i := range t.Hosts {
		places[strconv.Itoa(i)] = i
	}
	for i, h := range t.Hosts {
		places[h.Name] = i
	}
	var list []Flow
	first, stated := true, -1
	lines := bufio.NewScanner(bytes.NewReader(text))
	n := 1
	for ; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.FieldsFunc(line, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
		if len(fields) == 0 {
			continue
		}
		if first && fields[0] == "src" {
			first = false
			continue
		}
		if count, err := strconv.Atoi(fields[0]); first && err == nil && len(fields) == 1 {
			first, stated = false, count
			continue
		}
		first = false
		f, err := parseFlow(fields, places)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		list = append(list, f)
	}
	if lines.Err() != nil {
		return nil, fmt.Errorf("%s:%d: a line of more than %d bytes", file, n, bufio.MaxScanTokenSize)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: there is no flow", file)
	}
	if stated >= 0 && stated != len(list) {
		return nil, fmt.Errorf("%s: the first line says %d flows, and there are %d", file, stated, len(list))
	}
	return list, nil
}

func parseFlow(fields []string, places map[string]int) (Flow, error) {
	if len(fields) == 6 { // src dst class port bytes start
		fields = append(fields[:2:2], fields[4:]...)
	}
	if len(fields) != 4 {
		return Flow{}, fmt.Errorf("want src, dst, bytes and start_s, got %q", strings.Join(fields, " "))
	}
	src, okSrc := places[fields[0]]
	dst, okDst := places[fields[1]]
	size, errSize := strconv.ParseInt(fields[2], 10, 64)
	start, errStart := strconv.ParseFloat(fields[3], 64)
	switch {
	case !okSrc:
		return Flow{}, fmt.Errorf("src: there is no host %q", fields[0])
	case !okDst:
		return Flow{}, fmt.Errorf("dst: there is no host %q", fields[1])
	case src == dst:
		return Flow{}, fmt.Errorf("dst: %s sends to itself", fields[1])
	case errSize != nil || size < 1:
		return Flow{}, fmt.Errorf("bytes %q: want a whole number above 0", fields[2])
	case errStart != nil || !(start >= 0 && start < 1e6):
		return Flow{}, fmt.Errorf("start_s %q: want seconds from 0", fields[3])
	}
	return Flow{Src: src, Dst: dst, Bytes: size, Start: time.Duration(math.Round(start * 1e9))}, nil
}

// FlowList writes flows as ParseFlows reads them.
func FlowList(flows []Flow, t *fabric.Topology) []byte {
	var b bytes.Buffer
	b.WriteString("# src dst bytes start_s\n")
	for _, f := range flows {
		fmt.Fprintf(&b, "%s %s %d %.9f\n", t.Hosts[f.Src].Name, t.Hosts[f.Dst].Name, f.Bytes, f.Start.Seconds())
	}
	return b.Bytes()
}
