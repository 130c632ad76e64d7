package network

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/inspect"
)

// showRound prints a round in the chosen form.
func (j *inspectJob) showRound(r *view.Round) error {
	switch j.form {
	case cli.Table:
		return j.showTables(r)
	case cli.CSV:
		return cli.Show(j.c.Out, j.form, longGrid(r), nil)
	}
	return cli.Show(j.c.Out, j.form, nil, r.Views())
}

// longGrid returns a table with one row for each reading.
func longGrid(r *view.Round) cli.Grid {
	rows := cli.Grid{{"switch", "clock_us", "register", "quantity", "cell", "index", "port", "peer", "group", "path", "raw", "value", "unit", "text", "change", "rate"}}
	for _, result := range r.Switches {
		if result.Snapshot == nil {
			continue
		}
		for _, v := range result.Snapshot.Readings {
			rows = append(rows, []string{
				result.Switch, strconv.FormatInt(result.Snapshot.Clock.Microseconds(), 10), v.Register, v.Quantity,
				strconv.Itoa(v.Cell), v.Index, numberOrNothing(v.Port), v.Peer, numberOrNothing(v.Group), numberOrNothing(v.Path),
				strconv.FormatUint(v.Raw, 10), realNumber(v.Value), v.Unit, v.Text, realNumber(v.Change), realNumber(v.Rate),
			})
		}
	}
	return rows
}

func realNumber(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }

func numberOrNothing(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// answered reports whether a switch has readings. If it has none, answered logs this once, and
// again only if the reason changes.
func (j *inspectJob) answered(r *inspect.Result) bool {
	said, failed := j.failed[r.Switch]
	if r.Err == nil {
		if failed {
			delete(j.failed, r.Switch)
			j.c.Log.Info("readings as before", "switch", r.Switch)
		}
		return r.Snapshot != nil
	}
	if text := r.Err.Error(); !failed || text != said {
		if j.failed == nil {
			j.failed = map[string]string{}
		}
		j.failed[r.Switch] = text
		j.c.Log.Warn("no readings", "switch", r.Switch, "error", text)
	}
	return false
}

// showTables prints one table for each kind of object: ports, paths, groups, and
// switches. Each row shows the readings of one object side by side.
func (j *inspectJob) showTables(r *view.Round) error {
	tables := []*pivot{
		{title: "PORT", about: func(v *inspect.Reading) bool { return v.Counted() && v.Path == 0 }},
		{title: "PATH", about: (*inspect.Reading).Counted},
		{title: "PORT", about: func(v *inspect.Reading) bool { return v.Port != 0 && v.Path == 0 }},
		{title: "PATH", about: func(v *inspect.Reading) bool { return v.Path != 0 }},
		{title: "GROUP", about: func(v *inspect.Reading) bool { return v.Group != 0 }},
		{title: "TABLE", about: func(v *inspect.Reading) bool { return strings.HasPrefix(v.Index, aboutTable) }},
		{title: "COUNTER", about: func(v *inspect.Reading) bool { return strings.HasPrefix(v.Index, aboutCounter) }},
		{title: "FLOW", about: func(v *inspect.Reading) bool { return strings.HasPrefix(v.Index, "flow ") }},
		{title: "CELL", about: func(v *inspect.Reading) bool { return strings.HasPrefix(v.Index, "cell ") }},
		{title: "", about: func(*inspect.Reading) bool { return true }},
	}
	detail := j.c.Verbose || len(j.registers) > 0
	var idle []string
	for _, result := range r.Switches {
		if !j.answered(&result) {
			continue
		}
		quiet := !detail && !r.Contents && result.Snapshot.Idle()
		if quiet {
			idle = append(idle, result.Switch)
		}
		for i := range result.Snapshot.Readings {
			v := &result.Snapshot.Readings[i]
			if v.Minor && !detail || quiet && !tables[0].about(v) {
				continue
			}
			at := slices.IndexFunc(tables, func(p *pivot) bool { return p.about(v) })
			tables[at].add(result.Switch, v)
		}
	}
	shown := 0
	for _, p := range tables {
		if len(p.rows) == 0 {
			continue
		}
		if shown++; shown > 1 {
			fmt.Fprintln(j.c.Out)
		}
		if err := cli.Show(j.c.Out, cli.Table, p.grid(), nil); err != nil {
			return err
		}
	}
	for _, result := range r.Switches {
		if result.Snapshot != nil && j.c.Verbose {
			j.c.Log.Debug("read", "switch", result.Switch, "clock", result.Snapshot.Clock.Round(time.Microsecond), "guessed", result.Snapshot.Guessed)
		}
	}
	if len(idle) > 0 {
		if shown > 0 {
			fmt.Fprintln(j.c.Out)
		}
		fmt.Fprintf(j.c.Out, "no traffic since deployment: %s\n", abbreviated(idle))
		return nil
	}
	if shown == 0 {
		fmt.Fprintln(j.c.Out, r.Scheme+" keeps nothing in registers that there is anything in")
	}
	return nil
}

// A pivot is a table with a row for each cell or switch and a column for each
// reading.
type pivot struct {
	title string
	about func(*inspect.Reading) bool

	columns []string
	rows    []*pivotRow
	find    map[string]*pivotRow
}

type pivotRow struct {
	head  []string
	cells map[string]string
}

func (p *pivot) add(sw string, v *inspect.Reading) {
	column, index := v.Quantity, v.Index
	if p.title == "" {
		index = "" // The row of the switch shows all readings that concern the whole switch.
	}
	if !slices.Contains(p.columns, column) {
		p.columns = append(p.columns, column)
	}
	key := sw + "\x00" + index
	row := p.find[key]
	if row == nil {
		row = &pivotRow{head: p.head(sw, v), cells: map[string]string{}}
		if p.find == nil {
			p.find = map[string]*pivotRow{}
		}
		p.find[key] = row
		p.rows = append(p.rows, row)
	}
	row.cells[column] = v.Text
}

// head returns the label of a row.
func (p *pivot) head(sw string, v *inspect.Reading) []string {
	switch p.title {
	case "PORT":
		return []string{sw, strconv.Itoa(v.Port), v.Peer}
	case "PATH":
		return []string{sw, v.Index, numberOrNothing(v.Port), v.Peer}
	case "":
		return []string{sw}
	}
	return []string{sw, strings.TrimPrefix(strings.TrimPrefix(v.Index, aboutTable), aboutCounter)}
}

func (p *pivot) grid() cli.Grid {
	head := map[string][]string{
		"PORT": {"SWITCH", "PORT", "PEER"}, "PATH": {"SWITCH", "PATH", "PORT", "PEER"},
		"GROUP": {"SWITCH", "GROUP"}, "TABLE": {"SWITCH", "TABLE"}, "COUNTER": {"SWITCH", "COUNTER"}, "FLOW": {"SWITCH", "FLOW"}, "CELL": {"SWITCH", "CELL"}, "": {"SWITCH"},
	}[p.title]
	for _, c := range p.columns {
		head = append(head, strings.ToUpper(c))
	}
	rows := cli.Grid{head}
	for _, r := range p.rows {
		row := slices.Clone(r.head)
		for _, c := range p.columns {
			row = append(row, r.cells[c])
		}
		rows = append(rows, row)
	}
	return rows
}

// These words begin the names of tables and counters in readings.
const (
	aboutTable   = "table "
	aboutCounter = "counter "
)

// A contents holds access to the tables and counters of switches, by name.
type contents map[string]holder

type holder interface {
	controller.Peek
	controller.Holder
}

// openContents connects to the switches over P4Runtime.
func (s *site) openContents(ctx context.Context) (contents, error) {
	c := contents{}
	for _, sw := range s.switches {
		p, err := controller.NewPeek(ctx, sw.endpoint, view.ReachTimeout)
		if err != nil {
			c.close()
			return nil, vanished(fmt.Errorf("%s: %w", sw.node.Name, err))
		}
		h, ok := p.(holder)
		if !ok {
			p.Close()
			c.close()
			return nil, fmt.Errorf("%s: tables and counters are read by P4Runtime, which it does not speak", sw.node.Name)
		}
		c[sw.node.Name] = h
	}
	return c, nil
}

func (c contents) close() {
	for _, p := range c {
		p.Close()
	}
}

// add adds the tables and counters of the switches to their snapshots.
func (c contents) add(ctx context.Context, r *view.Round) {
	for i := range r.Switches {
		s := &r.Switches[i]
		if p := c[s.Switch]; p != nil && s.Snapshot != nil {
			if err := addContents(ctx, p, s.Snapshot); err != nil {
				s.Snapshot, s.Err = nil, err
			}
		}
	}
}

func addContents(ctx context.Context, p controller.Holder, s *inspect.Snapshot) error {
	add := func(index, quantity string, n int64, text string) {
		s.Readings = append(s.Readings, inspect.Reading{Index: index, Quantity: quantity, Raw: uint64(n), Value: float64(n), Text: text})
	}
	count := func(index string, c controller.Count) {
		add(index, "packets", c.Packets, strconv.FormatInt(c.Packets, 10))
		add(index, "bytes", c.Bytes, strconv.FormatInt(c.Bytes, 10))
	}
	tables, err := p.Tables(ctx)
	if err != nil {
		return err
	}
	for _, t := range tables {
		index := aboutTable + t.Table
		add(index, "entries", int64(t.Entries), fmt.Sprintf("%d of %d", t.Entries, t.Size))
		if t.Count != nil {
			count(index, *t.Count)
		}
	}
	counters, err := p.Counters(ctx)
	if err != nil {
		return err
	}
	for _, cell := range counters {
		count(fmt.Sprintf("%s%s %d", aboutCounter, cell.Counter, cell.Cell), cell.Count)
	}
	return nil
}
