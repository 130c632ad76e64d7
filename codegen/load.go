package codegen

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// rowsFile is the name of a catalogue's file of rows.
const rowsFile = "rows.yaml"

// folders contain the block files, one folder for each kind of chip. The first
// folder alone defines the meaning of a block.
var folders = []string{software.folder, tofino1.folder}

// A rowFile contains the rows of a catalogue and its other declarations.
type rowFile struct {
	Things  map[string]string `yaml:"things"` // descriptions of the information that blocks read and give
	Rows    []Row             `yaml:"rows"`
	Guarded struct {          // rows that are also listed with guards
		Rows   []string `yaml:"rows"`
		Guards []string `yaml:"guards"`
	} `yaml:"guarded"`
	Rooms map[string]map[string]room `yaml:"rooms"` // by architecture and row

	file string
	text string
}

// wrong returns an error about the value at a path of the file.
func (f *rowFile) wrong(path, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", f.file, max(1, lineOf(f.text, path)), fmt.Errorf(format, args...))
}

// load reads p4lb's own catalogue. Blocks for hardware are read on first use, because
// they declare nothing new.
func load(name string, dir fs.FS) (*Catalogue, error) {
	c := &Catalogue{things: map[string]string{}, rooms: map[string]map[string]room{}}
	rows, errRows := readRows(name, dir)
	list, err := readBlocks(name, dir, software.folder)
	if err := errors.Join(err, errRows); err != nil {
		return nil, err
	}
	c.software = new(shelf).with(list)
	c.hardware = sync.OnceValue(func() *shelf {
		list, err := readBlocks(name, dir, tofino1.folder)
		if err != nil {
			panic(err) // a test would have found the error
		}
		return new(shelf).with(list)
	})
	c.declare(list)
	c.take(rows)
	return c, nil
}

// With returns the catalogue extended by the blocks and rows of a folder:
// rows.yaml, and for each architecture v1model/*.tmpl or tna/*.tmpl. name is the
// folder's name in messages. The error joins all errors in the folder, each with
// file and line.
func (c *Catalogue) With(name string, dir fs.FS) (*Catalogue, error) {
	if err := strays(name, dir); err != nil {
		return nil, err
	}
	soft, errSoft := readBlocks(name, dir, software.folder)
	hard, errHard := readBlocks(name, dir, tofino1.folder)
	rows, errRows := readRows(name, dir)
	if err := errors.Join(errSoft, errHard, errRows); err != nil {
		return nil, err
	}
	list := slices.Concat(soft, hard)
	for _, b := range list {
		b.outside = true
	}
	hardware := c.hardware().with(hard)
	more := &Catalogue{
		software: c.software.with(soft), hardware: func() *shelf { return hardware },
		params: slices.Clone(c.params), guarded: c.guarded, guards: c.guards,
		things: maps.Clone(c.things), rooms: map[string]map[string]room{},
	}
	for _, r := range c.rows {
		r.home = more
		more.rows = append(more.rows, r)
	}
	for arch, known := range c.rooms {
		more.rooms[arch] = maps.Clone(known)
	}
	more.declare(list)
	more.take(rows)
	if err := more.check(list, rows); err != nil {
		return nil, err
	}
	return more, nil
}

// readBlocks reads the blocks in a folder, which may not exist.
func readBlocks(name string, dir fs.FS, folder string) ([]*block, error) {
	files, err := fs.Glob(dir, folder+"/*"+extension)
	if err != nil {
		return nil, err
	}
	var list []*block
	var errs []error
	for _, f := range files {
		b, err := readBlock(name, dir, f)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, b)
	}
	return list, errors.Join(errs...)
}

// extension is the extension of block files.
const extension = ".tmpl"

func readBlock(name string, dir fs.FS, file string) (*block, error) {
	text, err := fs.ReadFile(dir, file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path.Join(name, file), err)
	}
	from, err := newSource(path.Join(name, file), string(text))
	if err != nil {
		return nil, err
	}
	b := &block{}
	if err := decode(from.name, from.head(), b); err != nil {
		return nil, err
	}
	b.file = from // set after decoding, because an empty header would reset the block
	if b.Kind != skeleton && !slices.Contains(allKinds, b.Kind) {
		return nil, b.file.wrong("$.kind", "%w", near("kind", string(b.Kind), kindNames()))
	}
	return b, nil
}

func kindNames() []string {
	return lists.Map(allKinds, func(k kind) string { return string(k) })
}

// readRows reads the rows; the file may not exist.
func readRows(name string, dir fs.FS) (*rowFile, error) {
	f := &rowFile{file: path.Join(name, rowsFile)}
	text, err := fs.ReadFile(dir, rowsFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", f.file, err)
	}
	err = decode(f.file, string(text), f)
	f.file, f.text = path.Join(name, rowsFile), string(text)
	return f, err
}

// declare registers the parameters that blocks declare.
func (c *Catalogue) declare(list []*block) {
	for _, b := range list {
		for i := range b.Parameters {
			if p := &b.Parameters[i]; p.Unit != "" && c.param(p.Name) == nil {
				c.params = append(c.params, p)
			}
		}
	}
}

// take adds rows and the other declarations of a file.
func (c *Catalogue) take(f *rowFile) {
	maps.Copy(c.things, f.Things)
	for _, r := range f.Rows {
		r.home, r.title, r.Guard = c, r.Title, "none"
		r.Signal = cmp.Or(r.Signal, "none")
		c.rows = append(c.rows, r)
	}
	c.guarded = slices.Concat(c.guarded, f.Guarded.Rows)
	if len(f.Guarded.Guards) > 0 {
		c.guards = f.Guarded.Guards
	}
	for arch, rooms := range f.Rooms {
		if c.rooms[arch] == nil {
			c.rooms[arch] = map[string]room{}
		}
		maps.Copy(c.rooms[arch], rooms)
	}
}

// with returns the shelf with additional blocks, in the order in which they
// contribute: the order in the skeleton's header, then blocks that it does not
// list. Parts come after the parts that they use.
func (s *shelf) with(more []*block) *shelf {
	all := &shelf{slices.Concat(s.blocks, more), s.skeleton}
	if i := slices.IndexFunc(all.blocks, func(b *block) bool { return b.Kind == skeleton }); i >= 0 {
		all.skeleton = all.blocks[i]
		all.blocks = slices.Delete(all.blocks, i, i+1)
	}
	var list []*block
	placed := map[*block]bool{}
	var place func(b *block)
	place = func(b *block) {
		if b == nil || placed[b] {
			return
		}
		placed[b] = true
		if b.Kind == part {
			for _, name := range slices.Concat(b.Parts, b.Recirc) {
				place(all.lookup(part, name))
			}
		}
		list = append(list, b)
	}
	for _, k := range allKinds {
		for _, name := range all.skeleton.Order[k] {
			b := all.lookup(k, name)
			placed[b] = true
			list = append(list, b)
		}
		for _, b := range all.blocks {
			if b.Kind == k {
				place(b)
			}
		}
	}
	all.blocks = list
	return all
}

// strays returns an error for files in a folder that are never read.
func strays(name string, dir fs.FS) error {
	entries, err := fs.ReadDir(dir, ".")
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		err = at.Err // the path within the folder
	}
	if err != nil {
		return fmt.Errorf("reading the folder %s: %w", name, err)
	}
	var errs []error
	found := false
	for _, e := range entries {
		switch {
		case e.Name() == rowsFile, slices.Contains(folders, e.Name()):
			found = true
		case e.IsDir() && !strings.HasPrefix(e.Name(), "."), path.Ext(e.Name()) == extension:
			errs = append(errs, fmt.Errorf("%s: want the blocks in folders %s, and %s beside them", path.Join(name, e.Name()), strings.Join(folders, " and "), rowsFile))
		}
	}
	if !found && errs == nil {
		return fmt.Errorf("%s: want the blocks in folders %s, and %s beside them: there are none", name, strings.Join(folders, " and "), rowsFile)
	}
	return errors.Join(errs...)
}

// decode strictly decodes a YAML file into a value. The error names the file and
// the line; for an unknown key, it suggests the nearest one.
func decode(file, text string, into any) error {
	_, err := tree.Unmarshal([]byte(text), into)
	if at, ok := errors.AsType[*tree.Error](err); ok {
		return fmt.Errorf("%s:%d: %w", file, max(1, at.Line), err)
	}
	return err
}

// lineOf returns the line of the value at a path in a YAML text, or 0 if it does
// not exist.
func lineOf(text, path string) int {
	root, err := tree.Parse([]byte(text))
	if err != nil {
		return 0
	}
	n, ok := root.At(strings.TrimPrefix(path, "$."))
	if !ok {
		return 0
	}
	return n.Line
}
