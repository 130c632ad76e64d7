package p4lb_test

import (
	"cmp"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// mostUpward is the number of arrows between the files of a package that may
// point upwards.
const mostUpward = 12

// TestFilesInLayers keeps the files of every package readable one after the
// other. An arrow leads from a file to another of the same package that declares
// a function, a method, a type, a variable or a constant used in the first. In
// the best order, few arrows point upwards, from a file to one that is read
// later; each of these is half of a circle. The order is found by a fixed rule,
// so that the number is the same everywhere, though another order may have
// fewer.
func TestFilesInLayers(t *testing.T) {
	if testing.Short() {
		t.Skip("type-checks all packages in one goroutine: the race detector has nothing to see")
	}
	packages := map[string][]string{}
	constraints := build.Default
	constraints.GOOS, constraints.GOARCH = "linux", "amd64"
	for _, f := range goFiles(t) {
		if match, err := constraints.MatchFile(path.Dir(f), path.Base(f)); err != nil {
			t.Fatal(err)
		} else if match && !strings.HasSuffix(f, "_test.go") {
			packages[path.Dir(f)] = append(packages[path.Dir(f)], f)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		files := packages[dir]
		slices.Sort(files)
		uses := fileUses(t, files)
		place := make([]int, len(files))
		for i, f := range layers(uses) {
			place[f] = i
		}
		var up []string
		for from, to := range uses {
			for to, name := range to {
				if place[from] < place[to] {
					up = append(up, path.Base(files[from])+" -> "+path.Base(files[to])+" ("+name+")")
				}
			}
		}
		if len(up) > mostUpward {
			slices.Sort(up)
			t.Errorf("%s: %d arrows between its files point upwards, want at most %d: merge files that cannot be read apart, or move what both use:\n\t%s", dir, len(up), mostUpward, strings.Join(up, "\n\t"))
		}
	}
}

// fileUses are, for each file of a package, the files it uses, each with the
// first name in the alphabet that it uses of it.
func fileUses(t *testing.T, files []string) []map[int]string {
	t.Helper()
	set := token.NewFileSet()
	at := map[string]int{}
	var list []*ast.File
	for i, name := range files {
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		at[name] = i
		list = append(list, f)
	}
	// Other packages count as empty, because only declarations of this package
	// matter. The resulting type errors are ignored.
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Error: func(error) {}, Importer: emptyImporter{}}
	pkg, _ := config.Check(list[0].Name.Name, set, list, info)
	uses := make([]map[int]string, len(files))
	for i := range uses {
		uses[i] = map[int]string{}
	}
	for id, o := range info.Uses {
		if _, method := o.(*types.Func); o.Pkg() != pkg || !method && o.Parent() != pkg.Scope() {
			continue
		}
		from, to := at[set.Position(id.Pos()).Filename], at[set.Position(o.Pos()).Filename]
		if from != to {
			uses[from][to] = min(cmp.Or(uses[from][to], o.Name()), o.Name())
		}
	}
	return uses
}

// An emptyImporter returns packages that have names but no contents.
type emptyImporter struct{}

func (emptyImporter) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

// layers orders files from the bottom up. It starts with the file that uses the fewest
// remaining files (then the one that most of them use, then by name). Then it moves
// single files to positions with fewer upward arrows, as long as this helps.
func layers(uses []map[int]string) []int {
	arrow := func(from, to int) int {
		if _, ok := uses[from][to]; ok {
			return 1
		}
		return 0
	}
	var order, left []int
	for f := range uses {
		left = append(left, f)
	}
	for len(left) > 0 {
		next := slices.MinFunc(left, func(a, b int) int {
			var ua, ub, na, nb int
			for _, f := range left {
				ua, ub = ua+arrow(a, f), ub+arrow(b, f)
				na, nb = na+arrow(f, a), nb+arrow(f, b)
			}
			return cmp.Or(cmp.Compare(ua, ub), cmp.Compare(nb, na), cmp.Compare(a, b))
		})
		order = append(order, next)
		left = slices.DeleteFunc(left, func(f int) bool { return f == next })
	}
	for moved := true; moved; {
		moved = false
		for i, f := range order {
			rest := slices.Delete(slices.Clone(order), i, i+1)
			// gain[p]: how many fewer arrows point upwards with f at place p than
			// at the bottom.
			gain, best, now := 0, 0, 0
			at := 0
			for p, g := range rest {
				if p == i {
					now = gain
				}
				gain += arrow(f, g) - arrow(g, f)
				if gain > best {
					best, at = gain, p+1
				}
			}
			if i == len(rest) {
				now = gain
			}
			if best > now {
				order = slices.Insert(rest, at, f)
				moved = true
				break
			}
		}
	}
	return order
}

// TestLayers checks the number of upward arrows in a chain, in a circle, and in two
// circles that share a file.
func TestLayers(t *testing.T) {
	for name, c := range map[string]struct {
		uses [][]int
		want int
	}{
		"chain":       {[][]int{{1}, {2}, {3}, {}}, 0},
		"circle":      {[][]int{{1}, {2}, {0}}, 1},
		"two circles": {[][]int{{1, 2}, {0}, {0}}, 2},
	} {
		uses := make([]map[int]string, len(c.uses))
		for from, list := range c.uses {
			uses[from] = map[int]string{}
			for _, to := range list {
				uses[from][to] = "x"
			}
		}
		order, up := layers(uses), 0
		for from, list := range c.uses {
			for _, to := range list {
				if slices.Index(order, from) < slices.Index(order, to) {
					up++
				}
			}
		}
		if up != c.want || len(order) != len(c.uses) {
			t.Errorf("%s: %d arrows point upwards in the order %v, want %d", name, up, order, c.want)
		}
	}
}
