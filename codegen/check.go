package codegen

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// This file checks blocks and rows when they are read, before a program is
// generated. Each error is one line.

var (
	blockName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	})
	constantName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	})
)

// A checker collects the errors of a block.
type checker struct {
	*Catalogue
	errs []error
}

// check returns the errors of blocks and rows.
func (c *Catalogue) check(list []*block, rows *rowFile) error {
	k := &checker{Catalogue: c}
	for _, b := range list {
		shelf := k.shelfOf(b)
		switch first := shelf.lookup(b.Kind, b.Name); {
		case b.Kind == skeleton || b.Order != nil:
			k.wrong(b, "$.kind", "kind skeleton is reserved for p4lb: want one of %s", strings.Join(kindNames(), ", "))
			continue
		case !blockName().MatchString(b.Name):
			k.wrong(b, "$.name", "name %q: want small letters and digits, and hyphens between them", b.Name)
			continue
		case first != b:
			k.wrong(b, "$.name", "%v exists already, in %s", b, first.file.name)
			continue
		case shelf != k.software && b.Kind != part && k.lookup(b.Kind, b.Name) == nil:
			k.wrong(b, "$.name", "%v also needs a file in the folder %s, with its complete header", b, software.folder)
			continue
		case shelf == k.software && b.Kind != part && b.About == "" &&
			!slices.ContainsFunc(k.software.blocks, func(o *block) bool { return o.Kind == b.Kind && o.Instead == b.Name }):
			k.wrong(b, "$.kind", "want about: what %v does, in one line", b)
		}
		k.keys(b)
		k.parts(b, shelf)
		k.things(b)
		k.choice(b)
		k.parameters(b)
		k.text(b)
	}
	if len(k.errs) == 0 { // with broken blocks, rows would fail for the same reasons
		k.rows(rows)
	}
	return errors.Join(k.errs...)
}

func (k *checker) wrong(b *block, path, format string, args ...any) {
	k.errs = append(k.errs, b.file.wrong(path, format, args...))
}

// shelfOf returns the shelf that contains a block.
func (k *checker) shelfOf(b *block) *shelf {
	if slices.Contains(k.software.blocks, b) {
		return k.software
	}
	return k.hardware()
}

// keys checks that a block has only the keys of its kind.
func (k *checker) keys(b *block) {
	for _, x := range []struct {
		key   string
		given bool
		of    []kind
	}{
		{"gives", b.Gives != nil, []kind{signal}},
		{"reads", b.Reads != "", []kind{granularity, choice}},
		{"granularities", b.On != nil, []kind{choice}},
		{"sees-to-flows", b.Sees, []kind{choice}},
		{"can-hash", b.CanHash, []kind{choice}},
		{"fixed", b.Fixed, []kind{signal}},
		{"by-port", b.ByPort, []kind{signal}},
		{"edge", b.Edge, []kind{signal}},
		{"transit", b.Transit != nil, []kind{signal}},
		{"ghost", b.Ghost != nil, []kind{signal}},
		{"state-path", b.StatePath != "", []kind{signal}},
		{"load", b.Load.Register != "", []kind{signal}},
		{"holds", b.Holds != "", []kind{granularity, choice}},
		{"instead", b.Instead != "", []kind{granularity}},
	} {
		if x.given && !slices.Contains(x.of, b.Kind) {
			of := lists.Map(x.of, func(k kind) string { return string(k) })
			k.wrong(b, "$."+x.key, "%s is a key of a %s, not of a %s", x.key, strings.Join(of, " or a "), b.Kind)
		}
	}
	if _, ok := proofs[b.Check]; b.Check != "" && !ok {
		k.wrong(b, "$.check", "%w", near("check", b.Check, slices.Sorted(maps.Keys(proofs))))
	}
	if (len(b.Transit) > 0 || b.Edge && b.Kind == signal) && !b.Edge {
		k.wrong(b, "$.transit", "transit is for a signal between the edges: want edge: true beside it")
	}
	for i, a := range b.Attributes {
		if a.Name == "" || a.Type == "" || a.Meaning == "" {
			k.wrong(b, fmt.Sprintf("$.attributes[%d]", i), "want name, type and meaning of an attribute")
		}
	}
}

// parts checks that the parts exist, are used and do not form a cycle.
func (k *checker) parts(b *block, s *shelf) {
	names := s.names(func(b *block) bool { return b.Kind == part })
	for key, list := range map[string][]string{"parts": b.Parts, "recirc": b.Recirc, "transit": b.Transit, "ghost": b.Ghost} {
		for i, name := range list {
			if s.lookup(part, name) == nil {
				k.wrong(b, fmt.Sprintf("$.%s[%d]", key, i), "%w", near("part", name, names))
			}
		}
	}
	if b.Kind != part {
		return
	}
	if circle := circleFrom(s, b, nil); circle != nil && slices.Max(circle) == b.Name { // report each cycle once
		k.wrong(b, "$.parts", "a circle of parts: %s", strings.Join(append(circle, b.Name), " needs "))
	}
	if b.Name != ipv6 && !slices.ContainsFunc(s.blocks, func(o *block) bool {
		return slices.Contains(slices.Concat(o.Parts, o.Recirc, o.Transit, o.Ghost), b.Name)
	}) {
		k.wrong(b, "$.name", "no block is built on %v: name it under parts of one that is, or remove it", b)
	}
}

// circleFrom returns a cycle of parts that contains the part, or nil.
func circleFrom(s *shelf, b *block, trail []string) []string {
	switch {
	case b == nil || len(trail) > 0 && b.Name != trail[0] && slices.Contains(trail, b.Name):
		return nil
	case slices.Contains(trail, b.Name):
		return trail
	}
	for _, name := range slices.Concat(b.Parts, b.Recirc) {
		if circle := circleFrom(s, s.lookup(part, name), append(trail[:len(trail):len(trail)], b.Name)); circle != nil {
			return circle
		}
	}
	return nil
}

// things checks that some block reads each given value, and some block gives each
// read value.
func (k *checker) things(b *block) {
	known := slices.Sorted(maps.Keys(k.Catalogue.things))
	for i, thing := range b.Gives {
		path := fmt.Sprintf("$.gives[%d]", i)
		switch {
		case k.Catalogue.things[thing] == "":
			k.wrong(b, path, "%w; what it is stands in %s under things", near("thing", thing, known), rowsFile)
		case !slices.ContainsFunc(k.software.blocks, func(o *block) bool { return o.Reads == thing }):
			k.wrong(b, path, "%v gives %s (%s), which no granularity and no choice reads", b, thing, k.Catalogue.things[thing])
		}
	}
	switch {
	case b.Reads == "":
	case k.Catalogue.things[b.Reads] == "":
		k.wrong(b, "$.reads", "%w; what it is stands in %s under things", near("thing", b.Reads, known), rowsFile)
	case len(k.givers(b.Reads)) == 0:
		k.wrong(b, "$.reads", "%v reads %s, which no signal gives", b, b.Reads)
	}
}

// choice checks that the granularities of a choice exist, and that a restriction
// has a reason.
func (k *checker) choice(b *block) {
	for i, name := range b.On {
		if k.lookup(granularity, name) == nil {
			k.wrong(b, fmt.Sprintf("$.granularities[%d]", i), "%w", near("granularity", name, k.names(granularity)))
		}
	}
	if b.Like != "" && !slices.ContainsFunc(k.software.blocks, func(o *block) bool { return !o.outside && o.Kind == b.Kind && o.Name == b.Like }) {
		k.wrong(b, "$.like", "%w", near(string(b.Kind)+" of p4lb", b.Like, Standard().names(b.Kind)))
	}
	if len(b.On) > 0 && b.Why == "" {
		k.wrong(b, "$.granularities", "want why: the reason for which %v makes sense with these alone", b)
	}
	if b.Instead != "" && k.lookup(granularity, b.Instead) == nil {
		k.wrong(b, "$.instead", "%w", near("granularity", b.Instead, k.names(granularity)))
	}
}

// parameters checks that each parameter is declared once and that its values have its unit.
func (k *checker) parameters(b *block) {
	for i := range b.Parameters {
		p := &b.Parameters[i]
		path := fmt.Sprintf("$.parameters[%d]", i)
		if err := k.parameter(p, path); err != nil {
			path, err := err.path, err.error
			k.wrong(b, path, "parameter %s: %w", p.Name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Defaults)) {
		p := k.param(name)
		if p == nil {
			k.wrong(b, "$.defaults."+name, "%w", near("parameter", name, k.paramNames()))
		} else if _, err := p.parse(b.Defaults[name]); err != nil {
			k.wrong(b, "$.defaults."+name, "%w", err)
		}
	}
}

// A misplaced is an error with the path of the value that it concerns.
type misplaced struct {
	path string
	error
}

func (k *checker) parameter(p *Param, path string) *misplaced {
	at := func(key, format string, args ...any) *misplaced {
		return &misplaced{path + key, fmt.Errorf(format, args...)}
	}
	known := k.param(p.Name)
	switch {
	case !blockName().MatchString(p.Name):
		return at("", "want a name of small letters and digits")
	case p.Unit == "" && known == nil:
		return at("", "no block declares it: want its unit, default, meaning and source; there are %s", strings.Join(k.paramNames(), ", "))
	case p.Unit == "" && (p.Default != "" || p.Meaning != ""):
		return at("", "another block declares it: want its name alone, or a unit and a name of its own")
	case p.Unit == "":
		return nil
	case known != p:
		return at("", "it is declared already: want its name alone, which stands for what the other block declares")
	case p.Unit != OneOf && accepted[p.Unit] == "":
		return at(".unit", "%w", near("unit", string(p.Unit), []string{string(Time), string(Rate), string(Size), string(Share), string(Packets), string(Number), string(OneOf)}))
	case p.Unit == OneOf && len(p.Words) == 0:
		return at(".unit", "want the words that it can be one of")
	case p.Default == "" || p.Meaning == "" || p.Source == "":
		return at("", "want its default, its meaning and its source")
	case p.Constant != "" && (!constantName().MatchString(p.Constant) || p.Type == ""):
		return at(".constant", "want a name of capitals, and the type of the constant beside it")
	}
	for key, text := range map[string]string{".min": p.Min, ".max": p.Max} {
		if _, err := p.Unit.parse(text); text != "" && p.Unit != OneOf && err != nil {
			return at(key, "%w", err)
		}
	}
	if _, err := p.parse(p.Default); err != nil {
		return at(".default", "%w", err)
	}
	if p.Constant != "" {
		for _, o := range k.params {
			if o != p && o.Constant == p.Constant {
				return at(".constant", "%s is parameter %s already", p.Constant, o.Name)
			}
		}
	}
	return nil
}

func (k *checker) paramNames() []string {
	return lists.Map(k.params, func(p *Param) string { return p.Name })
}

func paramNames(params []Param) []string {
	return lists.Map(params, func(p Param) string { return p.Name })
}

// wantedTexts returns the templates that a block must define.
func wantedTexts(b *block) []string {
	switch b.Kind {
	case granularity:
		return []string{"decide"}
	case choice:
		return []string{"choose"}
	}
	return lists.Filter(b.Gives, func(thing string) bool { return thing == "cost" || thing == "weight" })
}

// text checks that each template is used, and that the templates used by others
// exist.
func (k *checker) text(b *block) {
	t, err := b.template()
	if err != nil {
		k.errs = append(k.errs, err)
		return
	}
	if k.shelfOf(b) != k.software {
		return // the row determines which of the templates the block needs
	}
	for _, name := range wantedTexts(b) {
		if t == nil || t.Lookup(name) == nil {
			k.wrong(b, "$.kind", "want {{define %q}} behind the head of %v", name, b)
		}
	}
}

// rows checks that the blocks and parameters of rows exist and fit together.
func (k *checker) rows(f *rowFile) {
	wrong := func(path, format string, args ...any) { k.errs = append(k.errs, f.wrong(path, format, args...)) }
	names := k.schemeNames()
	for i, given := range f.Rows {
		path := fmt.Sprintf("$.rows[%d]", i)
		switch {
		case !blockName().MatchString(given.Name):
			wrong(path, "name %q: want small letters and digits, and hyphens between them", given.Name)
			continue
		case slices.Index(names, given.Name) != len(names)-len(f.Rows)+i:
			wrong(path+".name", "there is a scheme %s already", given.Name)
			continue
		case given.Title == "" || given.Source == "":
			wrong(path, "row %s: want a title and a source", given.Name)
		case given.Guard != "":
			wrong(path+".guard", "row %s: a row has no guard of its own: its name with +%s stands for it with that", given.Name, given.Guard)
		}
		if err := k.row(k.Catalogue.rows[len(names)-len(f.Rows)+i]); err != nil {
			wrong(path+err.path, "row %s: %w", given.Name, err.error)
		}
	}
	for i, name := range f.Guarded.Rows {
		if !slices.Contains(names, name) {
			wrong(fmt.Sprintf("$.guarded.rows[%d]", i), "%w", near("scheme", name, names))
		}
	}
	for i, name := range f.Guarded.Guards {
		if k.lookup(guard, name) == nil {
			wrong(fmt.Sprintf("$.guarded.guards[%d]", i), "%w", near("guard", name, k.names(guard)))
		}
	}
	for arch, rooms := range f.Rooms {
		if !slices.Contains(Archs, arch) {
			wrong("$.rooms", "%w", near("architecture", arch, Archs))
		}
		for name := range rooms {
			if _, err := k.Lookup(name); err != nil {
				wrong("$.rooms."+arch, "%w", err)
			}
		}
	}
}

// row returns the error of a row, or nil.
func (k *checker) row(r Row) *misplaced {
	for _, kind := range kinds {
		if b := k.lookup(kind, r.named(kind)); b == nil || b.About == "" {
			return &misplaced{"." + string(kind), near(string(kind), r.named(kind), k.names(kind))}
		}
	}
	if err := r.validate(); err != nil {
		return &misplaced{"", err}
	}
	if _, err := r.values(k.on(software), recirculated, r.Defaults); err != nil {
		return &misplaced{".defaults", err}
	}
	if _, rest, ok := strings.Cut(r.titled(r.defaults()), "{"); ok {
		name, _, _ := strings.Cut(rest, "}")
		return &misplaced{".title", near("parameter", name, paramNames(r.Parameters()))}
	}
	return nil
}
