package network

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// NewRegister returns the verb register.
func NewRegister(c *cli.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "register VERB",
		Short: "Read and write single cells of registers",
		Long: `Register reads and writes single cells of a register by index, for experiments.
Use p4lb inspect to see decoded values.

` + reachHelp,
		Example: `  p4lb register read l1 q_C 17
  p4lb register write l1 pd_gran 2 16
  p4lb register write l1 faulty 0-511 0 --yes`,
		Args: cobra.ArbitraryArgs,
		RunE: cli.WantVerb("register needs a verb: read or write", ": expected read or write"),
	}
	cmd.AddCommand(newRegisterRead(c), newRegisterWrite(c))
	return cmd
}

// A cellRange selects cells of a register of one switch: from ≤ i < to.
type cellRange struct {
	site     *site
	sw       *reached
	register *manifest.Register
	from, to int
}

// parseCells finds a register by the user's name for it, and parses cells such as 3, 0-7 or all.
func (s *site) parseCells(register, cells string) (*cellRange, error) {
	sw := s.switches[0]
	m := sw.node.Manifest
	r := &cellRange{site: s, sw: sw}
	var have []string
	for i := range m.Registers {
		have = append(have, m.Registers[i].Name)
		if m.Registers[i].Name == register {
			r.register = &m.Registers[i]
		}
	}
	if r.register == nil {
		return nil, cli.Hinted(fmt.Errorf("%s: there is no register %q", sw.node.Name, register), "%s has %s", m.Scheme, strings.Join(have, ", "))
	}
	// A manifest may leave the number of cells to the program: the switch checks
	// the cells then.
	sized := r.register.Size > 0
	if cells == "all" && !sized {
		return nil, cli.Hinted(fmt.Errorf("cells all of %s: its manifest has no size", register), "want a number, or a range such as 0-7")
	}
	if cells == "all" {
		r.to = r.register.Size
		return r, nil
	}
	first, last, several := strings.Cut(cells, "-")
	if !several {
		last = first
	}
	from, errFrom := strconv.Atoi(first)
	to, errTo := strconv.Atoi(last)
	if errFrom != nil || errTo != nil || from < 0 || to < from || sized && to >= r.register.Size {
		return nil, cli.Hinted(fmt.Errorf("cells %q of %s: there are %d", cells, register, r.register.Size), "want a number, a range such as 0-7, or all")
	}
	r.from, r.to = from, to+1
	return r, nil
}

func newRegisterRead(c *cli.Console) *cobra.Command {
	var r reach
	var form cli.Format
	cmd := &cobra.Command{
		Use:   "read SWITCH REGISTER [CELLS]",
		Short: "Read raw cells",
		Long: `Read prints cells of a register as numbers. CELLS is an index such as 17, a range
such as 0-7, or all (the default). Ranges omit cells with value 0 unless you give
-v.`,
		Example: `  p4lb register read l1 rtt 32-35
  p4lb register read l1 fl_port -o csv`,
		Args: cli.WantArgs(2, 3, "a switch, a register and its cells"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.check(cmd, c); err != nil {
				return err
			}
			cells := "all"
			if len(args) == 3 {
				cells = args[2]
			}
			return readCells(cmd.Context(), c, &r, form, args[0], args[1], cells)
		},
	}
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV, cli.YAML)
	r.addFlags(cmd)
	return cmd
}

// openOne finds a switch by name. A switch given by its address matches any name.
func (r *reach) openOne(ctx context.Context, c *cli.Console, name string) (*site, error) {
	names := []string{name}
	if r.thrift != "" || r.grpc != "" {
		names = nil
	}
	return r.open(ctx, c, names)
}

// openCells opens a switch like openOne, and parses the cells of a register. The caller closes
// the site.
func (r *reach) openCells(ctx context.Context, c *cli.Console, sw, register, cells string) (*cellRange, error) {
	s, err := r.openOne(ctx, c, sw)
	if err != nil {
		return nil, err
	}
	at, err := s.parseCells(register, cells)
	if err != nil {
		s.close()
		return nil, err
	}
	return at, nil
}

// A cellView is a cell as it is shown.
type cellView struct {
	Cell  int    `json:"cell"`
	Value uint64 `json:"value"`
}

func readCells(ctx context.Context, c *cli.Console, r *reach, form cli.Format, sw, register, cells string) error {
	at, err := r.openCells(ctx, c, sw, register, cells)
	if err != nil {
		return err
	}
	defer at.site.close()
	ctx, cancel := context.WithTimeout(ctx, view.ReachTimeout)
	defer cancel()
	values, err := at.sw.registers.Read(ctx, register, at.from, at.to, nil)
	if err != nil {
		return vanished(fmt.Errorf("%s: reading %s: %w", at.sw.node.Name, register, err))
	}
	rows, list := cli.Grid{{"CELL", "VALUE", "HEX"}}, []cellView{}
	for i, v := range values {
		if v == 0 && len(values) > 1 && !c.Verbose {
			continue
		}
		list = append(list, cellView{at.from + i, v})
		rows = append(rows, []string{strconv.Itoa(at.from + i), strconv.FormatUint(v, 10), fmt.Sprintf("%#x", v)})
	}
	if len(list) == 0 && form == cli.Table {
		fmt.Fprintf(c.Out, "all %d cells are 0\n", len(values))
		return nil
	}
	return cli.Show(c.Out, form, rows, list)
}

func newRegisterWrite(c *cli.Console) *cobra.Command {
	var r reach
	var yes bool
	cmd := &cobra.Command{
		Use:   "write SWITCH REGISTER CELLS VALUE [--yes]",
		Short: "Set cells to a value",
		Long: `Write sets cells of a register to VALUE, a number such as 7 or 0x8001. CELLS is an
index such as 17, a range such as 0-7, or all. For more than one cell the command
asks for confirmation; without a terminal it needs --yes.

The data plane or a controller task may overwrite the cells later.`,
		Example: `  p4lb register write l1 pd_gran 2 16
  p4lb register write l1 faulty all 0 --yes`,
		Args: cli.WantArgs(4, 4, "a switch, a register, its cells and a value"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.check(cmd, c); err != nil {
				return err
			}
			return writeCells(cmd.Context(), c, &r, yes, args)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	r.addFlags(cmd)
	return cmd
}

// parseValue parses a number that fits into the cells.
func (r *cellRange) parseValue(text string) (uint64, error) {
	value, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0, cli.Hinted(fmt.Errorf("value %q is not a number", text), "want one such as 7 or 0x8001")
	}
	if w := r.register.Width; w > 0 && value>>w != 0 {
		return 0, fmt.Errorf("value %s: the cells of %s have %d bits", text, r.register.Name, w)
	}
	return value, nil
}

func writeCells(ctx context.Context, c *cli.Console, r *reach, yes bool, args []string) error {
	sw, register, cells, text := args[0], args[1], args[2], args[3]
	at, err := r.openCells(ctx, c, sw, register, cells)
	if err != nil {
		return err
	}
	defer at.site.close()
	value, err := at.parseValue(text)
	if err != nil {
		return err
	}
	if n := at.to - at.from; n > 1 && !yes {
		if err := c.Confirm(fmt.Sprintf("set %d cells of %s in %s to %s?", n, register, at.sw.node.Name, text)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, view.ReachTimeout)
	defer cancel()
	err = at.sw.registers.Write(ctx, register, at.from, at.to, value)
	if errors.Is(err, target.ErrNotPrimary) {
		return cli.Hinted(fmt.Errorf("%s: %w", at.sw.node.Name, err), "P4Runtime lets only its primary controller write: give the address of its Thrift server, --thrift ADDR")
	}
	if err != nil {
		return vanished(fmt.Errorf("%s: writing %s: %w", at.sw.node.Name, register, err))
	}
	return nil
}
