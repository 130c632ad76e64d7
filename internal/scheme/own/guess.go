package own

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Init writes a first manifest for a program, as YAML: what its registers and
// tables seem to be for, from what becomes of the values in them. Every guess is
// marked, with what it rests on. The file is where the manifest is to be written,
// which says how it names its program; "" is beside that.
func Init(program, shown, file string) ([]byte, error) {
	compiled, err := compile(program, shown, "", nil, nil)
	if err != nil {
		return nil, err
	}
	g := &guess{flow: flowOf(compiled.Config), compiled: compiled, keys: keyFields(compiled.Config), notes: map[string]string{}}
	name := strings.TrimSuffix(shown[strings.LastIndexByte(shown, '/')+1:], ".p4")
	if beside := besides(shown); file != "" && !slices.Contains(beside, file) {
		if g.program, err = filepath.Rel(filepath.Dir(file), shown); err != nil {
			g.program = shown
		}
	}
	return g.write(name), nil
}

// A guess is a manifest in the making.
type guess struct {
	*flow
	compiled *p4.Program
	keys     map[string][]string // the fields of each table's key
	program  string              // named by the manifest; "": it is beside it
	perHost  bool                // a path writes the destination\'s address: each host has paths of its own
	notes    map[string]string   // why, by what it is about
}

// A guessed table is what one seems to be for.
type guessed struct {
	purpose manifest.Purpose
	why     string
	keys    []manifest.Key
	actions []manifest.Action
	// each is what its entries are repeated for, where they are written out.
	each string
}

func (t *guessed) carries(f manifest.Fact) bool {
	return slices.ContainsFunc(t.actions, func(a manifest.Action) bool {
		return slices.ContainsFunc(a.Params, func(p manifest.Param) bool { return p.Carries == f })
	})
}

// roleFacts are what parameters carry that become something.
var roleFacts = map[role]manifest.Fact{
	toPort: manifest.EgressPort, toMAC: manifest.NextMAC, fromMAC: manifest.OwnMAC, toAddress: manifest.HostAddress,
	someOf: manifest.PathCount, firstOf: manifest.FirstMember,
}

// roleReasons say why.
var roleReasons = map[role]string{
	toPort: "becomes the egress port", toMAC: "becomes the destination MAC", fromMAC: "becomes the source MAC",
	toAddress: "becomes the destination address", someOf: "how many are chosen among", firstOf: "the first that is chosen among",
	chosen: "is chosen by a hash or a draw, from 0", member: "is chosen by a hash or a draw, from a first one",
}

// keyFields are the fields of the key of each table, as values of the flow.
func keyFields(config *bmv2.Config) map[string][]string {
	keys := map[string][]string{}
	for _, p := range config.Pipelines {
		for _, t := range p.Tables {
			keys[t.Name] = lists.Map(t.Key, func(k *bmv2.TableKey) string { return fieldName(k.Target.Header, k.Target.Field) })
		}
	}
	return keys
}

// isKey reports whether a value is in the key of a table other than one.
func (g *guess) isKey(value, but string) bool {
	for table, fields := range g.keys {
		if table != but && slices.Contains(fields, value) {
			return true
		}
	}
	return false
}

// carries is what a parameter seems to carry.
func (g *guess) carries(table, action string, i int) (manifest.Fact, string) {
	param := paramName(action, i)
	if f, ok := roleFacts[g.roles[param]]; ok {
		return f, roleReasons[g.roles[param]]
	}
	for _, field := range g.assigned(param) {
		if g.isKey(field, table) {
			return manifest.GroupID, "is looked up in another table"
		}
	}
	return "", ""
}

// table guesses what a table is for.
func (g *guess) table(t *configv1.Table, actions map[uint32]*configv1.Action) guessed {
	out := guessed{purpose: manifest.None, why: "no guess: it stays empty until entries are given"}
	if t.GetIsConstTable() {
		return guessed{purpose: manifest.Program, why: "its entries are the program's"}
	}
	name := t.GetPreamble().GetName()
	facts := map[manifest.Fact]bool{}
	for _, ref := range t.GetActionRefs() {
		a := actions[ref.GetId()]
		made := manifest.Action{Name: manifest.Short(a.GetPreamble().GetName())}
		for i, p := range a.GetParams() {
			fact, why := g.carries(name, a.GetPreamble().GetName(), i)
			facts[fact] = fact != ""
			g.notes[name+" "+made.Name+" "+p.GetName()] = why
			made.Params = append(made.Params, manifest.Param{Name: p.GetName(), Carries: fact})
		}
		out.actions = append(out.actions, made)
	}
	fields := g.keys[name]
	for i, f := range t.GetMatchFields() {
		value := ""
		if i < len(fields) {
			value = fields[i]
		}
		fact, why := g.keyFact(value)
		g.notes[name+" "+f.GetName()] = why
		out.keys = append(out.keys, manifest.Key{Name: f.GetName(), Carries: fact})
	}
	has := func(list ...manifest.Fact) bool {
		return slices.ContainsFunc(list, func(f manifest.Fact) bool { return facts[f] })
	}
	key := func(f manifest.Fact) bool {
		return slices.ContainsFunc(out.keys, func(k manifest.Key) bool { return k.Carries == f })
	}
	switch {
	case key(manifest.Destination) && has(manifest.EgressPort, manifest.GroupID, manifest.FirstMember):
		out.purpose, out.why = manifest.Route, "its key is the destination, its actions lead there"
	case (key(manifest.SlotNumber) && key(manifest.GroupID) || key(manifest.MemberIndex)) && has(manifest.EgressPort):
		out.purpose, out.why = manifest.Member, "its key is what was chosen, its actions lead there"
	case len(out.keys) == 1 && key(manifest.EgressPort) && has(manifest.OwnMAC, manifest.NextMAC):
		out.purpose, out.why = manifest.PortConfig, "its key is a port, its actions are about that"
	}
	if to := g.hostAction(&out, fields); out.purpose == manifest.None && to != nil {
		out.why, out.each = "each host has its MAC, by which the program forwards", "host"
		out.keys[0].Carries, out.actions = manifest.HostMAC, []manifest.Action{*to}
	}
	return out
}

// hostAction is the action of a table by which a packet goes to the host that has the
// destination's MAC; nil if it has none, or one of which not all is known.
func (g *guess) hostAction(t *guessed, fields []string) *manifest.Action {
	if len(t.keys) != 1 || len(fields) != 1 || g.roles[fields[0]] != toMAC {
		return nil
	}
	for i, a := range t.actions {
		if len(a.Params) == 1 && a.Params[0].Carries == manifest.EgressPort {
			return &t.actions[i]
		}
	}
	return nil
}

// keyFact is what a field of a key seems to carry.
func (g *guess) keyFact(value string) (manifest.Fact, string) {
	switch g.roles[value] {
	case toAddress:
		return manifest.Destination, "is the destination address"
	case outOf, toPort:
		return manifest.EgressPort, "is the egress port"
	case inAt:
		return manifest.IngressPort, "is the ingress port"
	case chosen:
		return manifest.SlotNumber, roleReasons[chosen]
	case member:
		return manifest.MemberIndex, roleReasons[member]
	}
	// The first action that sets it is named.
	first := len(g.config.Actions)
	for _, from := range g.from[value] {
		if i, ok := g.params[from]; ok {
			first = min(first, i)
		}
	}
	if first < len(g.config.Actions) {
		return manifest.GroupID, "is set by " + manifest.Short(g.config.Actions[first].Name)
	}
	return "", ""
}

// register guesses what a register holds.
func (g *guess) register(name string) (r manifest.Register, why string) {
	r = manifest.Register{Name: name, Content: manifest.Content{Kind: manifest.Opaque}}
	reg := registerName(name)
	for _, f := range g.index[reg] {
		switch g.roles[f] {
		case outOf, toPort:
			r.Index, why = manifest.ByPort, "its index is the egress port"
		case inAt:
			r.Index, why = manifest.ByPort, "its index is the ingress port"
		case flowSlot:
			r.Index, why = manifest.ByFlow, "its index is a hash"
		}
	}
	because := func(text string) string { return strings.TrimPrefix(why+", "+text, ", ") }
	// What is written, not what that was computed of in turn: a packet counter
	// that starts anew at times is no time.
	for _, f := range g.from[reg] {
		switch g.roles[f] {
		case clockTime:
			if strings.HasSuffix(f, "_global_timestamp") {
				r.Kind, r.Unit, why = manifest.Moment, manifest.Microseconds, because("the clock is written to it")
			}
		case queued:
			r.Kind, r.Unit, why = manifest.QueueLength, manifest.Packets, because("a queue's length is written to it")
		case toPort:
			r.Kind, why = manifest.Port, because("it becomes the egress port")
		}
	}
	if g.roles[reg] == toPort {
		r.Kind, why = manifest.Port, because("it becomes the egress port")
	}
	return r, why
}

// write writes the manifest.
func (g *guess) write(name string) []byte {
	var b strings.Builder
	line := func(why, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if why != "" {
			text += "  # guess: " + why
		}
		b.WriteString(text + "\n")
	}
	info := g.compiled.P4Info
	arch := g.compiled.Arch
	actions := map[uint32]*configv1.Action{}
	for _, a := range info.GetActions() {
		actions[a.GetPreamble().GetId()] = a
	}
	var tables []guessed
	paths := false
	for _, t := range info.GetTables() {
		made := g.table(t, actions)
		paths = paths || made.purpose == manifest.Member
		g.perHost = g.perHost || made.purpose == manifest.Member && made.carries(manifest.HostAddress)
		tables = append(tables, made)
	}
	fmt.Fprintf(&b, "# What %s.p4 means, for p4lb. What is marked as a guess was concluded from the\n# program: look at it, and take the mark away. docs/manifest.md explains the words.\n", name)
	line("", "version: %d", manifest.Version)
	line("", "scheme: %s", quoted(name))
	line("", "arch: %s", arch)
	if g.program != "" {
		line("", "program: %s", quoted(g.program))
	}
	if paths {
		line("the largest group that a table has room for", "paths: %d", manifest.MaxPaths)
	}
	if len(info.GetControllerPacketMetadata()) > 0 {
		line("the program knows packets to or from a controller", "cpu_port: 255")
	}
	if len(info.GetRegisters()) > 0 {
		line("", "registers:")
	}
	for _, r := range info.GetRegisters() {
		made, why := g.register(r.GetPreamble().GetName())
		text := fmt.Sprintf("- {name: %s", quoted(made.Name))
		for _, f := range []struct{ key, value string }{{"index", string(made.Index)}, {"kind", string(made.Kind)}, {"unit", string(made.Unit)}} {
			if f.value != "" {
				text += fmt.Sprintf(", %s: %s", f.key, f.value)
			}
		}
		line(why, "%s}", text)
	}
	if len(tables) > 0 {
		line("", "tables:")
	}
	for i, t := range info.GetTables() {
		g.writeTable(line, t, &tables[i], actions)
	}
	g.writeSessions(line)
	return []byte(b.String())
}

func (g *guess) writeTable(line func(why, format string, args ...any), t *configv1.Table, made *guessed, actions map[uint32]*configv1.Action) {
	name := t.GetPreamble().GetName()
	line("", "- name: %s", quoted(name))
	if g.perHost && (made.purpose == manifest.Route || made.purpose == manifest.Member) {
		made.why, made.each = "each host has paths of its own, since a path writes the host's address", "host"
		if made.purpose == manifest.Member {
			made.each = "host path"
		}
	}
	if made.each != "" {
		made.writeEntries(line)
		return
	}
	if made.purpose == manifest.None || made.purpose == manifest.Program {
		line("", "  purpose: %s  # %s", made.purpose, made.why)
		g.writeShape(line, t, actions)
		return
	}
	line(made.why, "  purpose: %s", made.purpose)
	if len(made.keys) > 0 {
		line("", "  keys:")
	}
	for _, k := range made.keys {
		if k.Carries == "" {
			line("nothing is known about it, so it matches anything", "  - {name: %s, value: \"*\"}", quoted(k.Name))
			continue
		}
		line(g.notes[name+" "+k.Name], "  - {name: %s, carries: %s}", quoted(k.Name), k.Carries)
	}
	line("", "  actions:")
	for _, a := range made.actions {
		if len(a.Params) == 0 {
			continue
		}
		line("", "  - name: %s", quoted(a.Name))
		line("", "    params:")
		for _, p := range a.Params {
			if p.Carries == "" {
				line("nothing is known about it", "    - {name: %s, value: \"0\"}", quoted(p.Name))
				continue
			}
			line(g.notes[name+" "+a.Name+" "+p.Name], "    - {name: %s, carries: %s}", quoted(p.Name), p.Carries)
		}
	}
}

// hostExprs are what a fact is written as in the entries of hosts.
var hostExprs = map[manifest.Fact]string{
	manifest.Destination: "$host-address/32", manifest.GroupID: "$host",
	manifest.FirstMember: "$first-path", manifest.MemberIndex: "$path",
}

// writeEntries writes the entries of a table that has some for each host.
func (t *guessed) writeEntries(line func(why, format string, args ...any)) {
	expr := func(f manifest.Fact) string {
		if x, ok := hostExprs[f]; ok {
			return x
		}
		return "$" + string(f)
	}
	for _, a := range t.actions {
		if len(a.Params) == 0 {
			continue
		}
		var match, args []string
		for _, k := range t.keys {
			match = append(match, fmt.Sprintf("%s: %s", quoted(k.Name), expr(k.Carries)))
		}
		for _, p := range a.Params {
			args = append(args, fmt.Sprintf("%s: %s", quoted(p.Name), expr(p.Carries)))
		}
		line("", "  entries:")
		line(t.why, "  - {each: %s, match: {%s}, action: %s, args: {%s}}", t.each, strings.Join(match, ", "), quoted(a.Name), strings.Join(args, ", "))
		return
	}
}

// writeShape says what an entry would have to give, as a comment to begin with.
func (g *guess) writeShape(line func(why, format string, args ...any), t *configv1.Table, actions map[uint32]*configv1.Action) {
	if t.GetIsConstTable() {
		return
	}
	line("", "  # entries:")
	for _, ref := range t.GetActionRefs() {
		a := actions[ref.GetId()]
		if ref.GetScope() == configv1.ActionRef_DEFAULT_ONLY || len(a.GetParams()) == 0 && len(t.GetActionRefs()) > 1 {
			continue
		}
		match := "default: true"
		if fields := t.GetMatchFields(); len(fields) > 0 {
			list := lists.Map(fields, func(f *configv1.MatchField) string { return fmt.Sprintf("%s: …", f.GetName()) })
			match = fmt.Sprintf("match: {%s}", strings.Join(list, ", "))
		}
		args := ""
		for _, p := range a.GetParams() {
			args += fmt.Sprintf(", %s: …", p.GetName())
		}
		if args != "" {
			args = fmt.Sprintf(", args: {%s}", args[2:])
		}
		line("", "  # - {%s, action: %s%s}", match, manifest.Short(a.GetPreamble().GetName()), args)
	}
}

// noLink is a port that is likely to have no link.
const noLink = 500

// writeSessions writes the clone sessions that the program names.
func (g *guess) writeSessions(line func(why, format string, args ...any)) {
	sessions := g.cloneSessions()
	if len(sessions) == 0 {
		return
	}
	round := g.recirculates()
	line("", "clone_sessions:")
	for _, s := range sessions {
		if round {
			line("copies recirculates, so the port is one without a link", "- {session: %d, port: %d}", s, noLink)
		} else {
			line("the port is unknown", "- {session: %d, port: 1}", s)
		}
	}
	if round {
		line("", "virtual_ports:")
		line("", "- {port: %d, kind: recirculation}", noLink)
	}
}

// quoted is a word as YAML takes it for one.
func quoted(text string) string {
	plain := strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && r != '.' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
	if plain && text != "" && (text[0] < '0' || text[0] > '9') && text[0] != '.' {
		return text
	}
	return fmt.Sprintf("%q", text)
}
