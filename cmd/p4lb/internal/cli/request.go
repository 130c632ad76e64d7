package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/provenance"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/scheme/own"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// A Request selects the programs to generate, with the values of the command
// line and of a parameter file.
type Request struct {
	All bool `yaml:"all"`

	Blocks      string `yaml:"blocks"`
	Scheme      string `yaml:"scheme"`
	Granularity string `yaml:"granularity"`
	Signal      string `yaml:"signal"`
	Choice      string `yaml:"choice"`
	Guard       string `yaml:"guard"`

	Set       map[string]string `yaml:"set"`
	Arch      string            `yaml:"arch"`
	Ports     string            `yaml:"ports"`
	Coeffs    string            `yaml:"coeffs"`
	StatePath string            `yaml:"state-path"`
	Role      string            `yaml:"role"`
	Errata    string            `yaml:"errata"`
	IPv6      bool              `yaml:"ipv6"`

	Assigned []string // --set
	File     string   // -f
}

// AddFlags adds the flags of a request to cmd.
func (r *Request) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&r.Scheme, "scheme", "", "generate this `SCHEME`, such as qall-poly3, drill+rlb or ./mine")
	AddBlocksFlag(cmd, &r.Blocks)
	flags.BoolVar(&r.All, "all", false, "generate the whole catalogue")
	flags.StringVar(&r.Granularity, "granularity", "", "compose: the unit of traffic for a decision, such as flow or flowlet")
	flags.StringVar(&r.Signal, "signal", "", "compose: the information about paths")
	flags.StringVar(&r.Choice, "choice", "", "compose: the rule that chooses a path")
	flags.StringVar(&r.Guard, "guard", "", "compose: the rule that may override the choice")
	flags.StringArrayVar(&r.Assigned, "set", nil, "set a parameter, as `NAME=VALUE` with its unit (repeatable)")
	flags.StringVarP(&r.File, "file", "f", "", "read parameters from the YAML `FILE`")
	flags.StringVar(&r.Ports, "ports", "", "paths of the largest group: a `NUMBER`, or ports such as 1-4,9 (default 4)")
	flags.StringVar(&r.Coeffs, "coeffs", "", "coefficients of a fitted scheme: the JSON `FILE` of a model, or runtime to let the controller set them")
	flags.StringVar(&r.StatePath, "state-path", "", "transport of queue state to ingress: recirc, recirc-cut (copies without payload, not on BMv2), shared, or ghost on Tofino 2 (default recirc; shared for ar on BMv2)")
	flags.StringVar(&r.Role, "role", "", "role of the switch: leaf, spine, tor, agg or core (default leaf)")
	flags.StringVar(&r.Errata, "errata", "", "keep the known errors of the paper if `WORD` is printed")
	flags.BoolVar(&r.IPv6, "ipv6", false, "forward IPv6 beside IPv4")
	AddArchFlag(cmd, &r.Arch, "architecture `ARCH` of the program: v1model, tna or t2na (default v1model)")
	CompleteLater(cmd, "scheme", codegen.Names)
	CompleteWith(cmd, "role", codegen.Roles)
	CompleteWith(cmd, "state-path", codegen.StatePaths)
	for _, kind := range []string{"granularity", "signal", "choice", "guard"} {
		CompleteLater(cmd, kind, func() []string {
			var list []string
			for _, b := range codegen.Blocks() {
				if b.Kind == kind {
					list = append(list, b.Name)
				}
			}
			return list
		})
	}
}

// AddBlocksFlag adds the flag for a folder of the user's own blocks.
func AddBlocksFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "blocks", "", "add the blocks and rows in the folder `DIR` to the catalogue, see docs/blocks.md")
	if err := cmd.MarkFlagDirname("blocks"); err != nil {
		panic(err) // impossible: the flag has just been defined
	}
}

// LibraryFrom returns the catalogue together with the user's own programs,
// which paths relative to dir name. Paths to folders of blocks are relative to
// dir if that folder exists, else to the current folder.
func LibraryFrom(dir string) *scheme.Library {
	return &scheme.Library{Sources: []scheme.Source{own.Source(dir)}, Open: func(blocks string) (fs.FS, error) {
		if beside := filepath.Join(dir, blocks); !filepath.IsAbs(blocks) && IsFolder(beside) {
			return plain.DirFS(beside), nil
		}
		return plain.DirFS(blocks), nil
	}}
}

// LibraryWith returns the library for the current folder, extended by a folder
// of blocks unless the name is "".
func LibraryWith(blocks string) (*scheme.Library, error) {
	l := LibraryFrom(".")
	if blocks == "" {
		return l, nil
	}
	return l.With(blocks)
}

// Complete reads the parameter file, if any, and lets the command line override
// its values.
func (r *Request) Complete(cmd *cobra.Command, c *Console) error {
	set, err := Assigned(cmd, r.Assigned)
	if err != nil {
		return err
	}
	if r.File != "" {
		if err := r.read(cmd, c); err != nil {
			return fmt.Errorf("reading %s: %w", DisplayName(r.File), err)
		}
	}
	if r.Set == nil {
		r.Set = map[string]string{}
	}
	maps.Copy(r.Set, set)
	composed := r.Granularity != "" || r.Signal != "" || r.Choice != "" || r.Guard != ""
	switch n := Count(r.Scheme != "", r.All, composed); {
	case n > 1:
		return UsageError(cmd, "--scheme, --all and a composition exclude each other")
	case n == 0:
		return UsageError(cmd, "gen requires --scheme, --all or a composition")
	case r.All && (len(r.Set) > 0 || r.Coeffs != "" || r.Errata != ""):
		return UsageError(cmd, "--all excludes --set, --coeffs and --errata: their values depend on the scheme")
	case composed && (r.Granularity == "" || r.Choice == ""):
		return UsageError(cmd, "a composition requires --granularity and --choice at least")
	}
	return nil
}

// Assigned parses the values of --set, each NAME=VALUE.
func Assigned(cmd *cobra.Command, values []string) (map[string]string, error) {
	set := map[string]string{}
	for _, s := range values {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, UsageError(cmd, "--set %s: want NAME=VALUE", s)
		}
		set[name] = value
	}
	return set, nil
}

// Count returns the number of true conditions.
func Count(conditions ...bool) int {
	return len(lists.Filter(conditions, func(c bool) bool { return c }))
}

// read fills in values from the file for flags that are absent on the command
// line.
func (r *Request) read(cmd *cobra.Command, c *Console) error {
	text, err := c.ReadSource(r.File)
	if err != nil {
		return errors.Unwrap(err)
	}
	var file Request
	if _, err := tree.Unmarshal(text, &file); err != nil {
		if at, ok := errors.AsType[*tree.Error](err); ok && at.Line > 0 {
			return fmt.Errorf("line %d: %w", at.Line, err)
		}
		return err
	}
	given := cmd.Flags().Changed
	naming := given("scheme") || given("all") || given("granularity") || given("choice")
	if !naming {
		r.All, r.Scheme = file.All, file.Scheme
		r.Granularity, r.Choice = file.Granularity, file.Choice
		take(&r.Signal, file.Signal, given("signal"))
		take(&r.Guard, file.Guard, given("guard"))
	}
	take(&r.Blocks, file.Blocks, given("blocks"))
	take(&r.Arch, file.Arch, given("arch"))
	take(&r.Ports, file.Ports, given("ports"))
	take(&r.Coeffs, file.Coeffs, given("coeffs"))
	take(&r.StatePath, file.StatePath, given("state-path"))
	take(&r.Role, file.Role, given("role"))
	take(&r.Errata, file.Errata, given("errata"))
	if !given("ipv6") {
		r.IPv6 = file.IPv6
	}
	r.Set = file.Set
	return nil
}

func take(to *string, from string, given bool) {
	if !given {
		*to = from
	}
}

// Schemes returns the selected schemes.
func (r *Request) Schemes() ([]scheme.Scheme, error) {
	library, err := LibraryWith(r.Blocks)
	if err != nil {
		return nil, err
	}
	if r.All {
		return library.All(), nil
	}
	var one scheme.Scheme
	if r.Scheme != "" {
		one, err = library.Find(r.Scheme)
	} else {
		one, err = library.Compose(r.Granularity, r.Signal, r.Choice, r.Guard)
	}
	return []scheme.Scheme{one}, err
}

// Params returns the parameters for the generator.
func (r *Request) Params(c *Console) (codegen.Params, error) {
	p := codegen.Params{Arch: r.Arch, Set: r.Set, StatePath: r.StatePath, Role: r.Role, IPv6: r.IPv6}
	p.Provenance = &codegen.Provenance{Version: provenance.This().String(), Flags: r.flags(), Blocks: r.Blocks}
	var err error
	if p.Ports, p.MaxPort, err = parsePorts(r.Ports); err != nil {
		return p, err
	}
	switch r.Errata {
	case "":
	case "printed":
		p.Printed = true
	default:
		return p, fmt.Errorf("errata %q: want printed", r.Errata)
	}
	switch r.Coeffs {
	case "":
	case "runtime":
		p.Runtime = true
	default:
		text, err := c.ReadSource(r.Coeffs)
		if err != nil {
			return p, err
		}
		poly, err := fitting.DecodePoly(text)
		if err != nil {
			return p, fmt.Errorf("reading %s: %w", DisplayName(r.Coeffs), err)
		}
		p.Coeffs = &poly
	}
	return p, nil
}

// CheckStatePath rejects --state-path if no program of the scheme transports
// queue state to ingress.
func (r *Request) CheckStatePath(programs ...*manifest.Manifest) error {
	brings := func(m *manifest.Manifest) bool { return m.StatePath != "" }
	if r.StatePath == "" || r.All || slices.ContainsFunc(programs, brings) {
		return nil
	}
	return fmt.Errorf("--state-path %s: the ingress of %s reads no queue state: remove the flag", r.StatePath, programs[0].Scheme)
}

// flags returns the flags and values of the file that affect the programs,
// besides the scheme.
func (r *Request) flags() []string {
	var list []string
	for _, f := range [][2]string{
		{"--arch", r.Arch}, {"--role", r.Role}, {"--ports", r.Ports}, {"--state-path", r.StatePath},
		{"--errata", r.Errata}, {"--coeffs", r.Coeffs},
	} {
		if f[1] != "" {
			list = append(list, f[:]...)
		}
	}
	if r.IPv6 {
		list = append(list, "--ipv6")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Set)) {
		list = append(list, "--set", name+"="+r.Set[name])
	}
	return list
}

// parsePorts parses a number of ports, or a list such as 1-4,9. For a list it
// also returns the highest port.
func parsePorts(text string) (n, highest int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 {
			return 0, 0, fmt.Errorf("ports %d: want 2 to %d", n, codegen.MaxPaths)
		}
		return n, 0, nil
	}
	var ports []int
	for item := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(item, "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if errA != nil || errB != nil || a < 0 || b < a || b > 510 {
			return 0, 0, fmt.Errorf("ports %q: want a number, or ports such as 1-4,9, from 0 to 510", text)
		}
		for p := a; p <= b; p++ {
			ports = append(ports, p)
		}
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	return len(ports), ports[len(ports)-1], nil
}
