package own

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// An InitRequest asks for a first manifest.
type InitRequest struct {
	Files   fs.FS  // the program's file system; nil is this machine
	Program string // the program's file
	Shown   string // its name in messages and in the manifest
	// File is where the manifest will be stored, which determines how it refers to the
	// program and its includes; "" means in the program's folder.
	File     string
	Includes []string // include folders of the compiler
	Defines  []string // macros, as NAME or NAME=VALUE
}

// Init writes a first manifest for a program as YAML. It guesses the purpose of
// registers and tables from the data flow of the program. Each guess is marked,
// with the reason.
func Init(r InitRequest) ([]byte, error) {
	var files fs.FS = machine{}
	if r.Files != nil {
		files = r.Files
	}
	compiled, err := compile(files, r.Program, r.Shown, "", r.Includes, r.Defines)
	if err != nil {
		return nil, err
	}
	g := &guess{flow: flowOf(compiled.Config), compiled: compiled, keys: keyFields(compiled.Config), notes: map[string]string{}}
	name := strings.TrimSuffix(r.Shown[strings.LastIndexByte(r.Shown, '/')+1:], ".p4")
	folder := filepath.Dir(cmp.Or(r.File, r.Shown))
	from := func(path string) string {
		if rel, err := filepath.Rel(folder, path); err == nil {
			return rel
		}
		return path
	}
	if r.File != "" && !slices.Contains(besides(r.Shown), r.File) {
		g.program = from(r.Shown)
	}
	g.includes = lists.Map(r.Includes, from)
	for _, d := range r.Defines {
		name, value, ok := strings.Cut(d, "=")
		if !ok {
			value = "1" // the text after preprocessing
		}
		g.defines = append(g.defines, fmt.Sprintf("%s: %q", name, value))
	}
	return g.write(name), nil
}

// A guess is a manifest under construction.
type guess struct {
	*flow
	compiled *p4.Program
	keys     map[string][]string // fields of each table's key
	program  string              // name of the program in the manifest; "": in the same folder
	includes []string            // include folders, relative to the manifest
	defines  []string            // macros, as NAME: VALUE
	perHost  bool                // A path rewrites the destination address, so that each host has its own paths.
	fixed    string              // the field with a selected value of a constant range, in the key of a table that sets the port
	notes    map[string]string   // reasons by object
}

// A guessed table is the guess for one table.
type guessed struct {
	purpose manifest.Purpose
	why     string
	keys    []manifest.Key
	actions []manifest.Action
	// each is the repetition of its entries, if they are written out.
	each string
	// lines are its entries, if they are complete.
	lines []string
}

func (t *guessed) carries(f manifest.Fact) bool {
	return slices.ContainsFunc(t.actions, func(a manifest.Action) bool {
		return slices.ContainsFunc(a.Params, func(p manifest.Param) bool { return p.Carries == f })
	})
}

// roleFacts maps the roles of parameters to facts in the manifest.
var roleFacts = map[role]manifest.Fact{
	toPort: manifest.EgressPort, toMAC: manifest.NextMAC, fromMAC: manifest.OwnMAC, toAddress: manifest.HostAddress,
	someOf: manifest.PathCount, firstOf: manifest.FirstMember,
}

// roleReasons are the reasons for roles.
var roleReasons = map[role]string{
	toPort: "becomes the egress port", toMAC: "becomes the destination MAC", fromMAC: "becomes the source MAC",
	toAddress: "becomes the destination address", someOf: "the number of choices", firstOf: "the first choice",
	chosen: "selected by a hash or a random number, from 0", member: "selected by a hash or a random number, from a first value",
}

// keyFields returns the fields of each table's key, as values of the flow.
func keyFields(config *bmv2.Config) map[string][]string {
	keys := map[string][]string{}
	for _, p := range config.Pipelines {
		for _, t := range p.Tables {
			keys[t.Name] = lists.Map(t.Key, func(k *bmv2.TableKey) string { return fieldName(k.Target.Header, k.Target.Field) })
		}
	}
	return keys
}

// isKey reports whether a value is in the key of another table.
func (g *guess) isKey(value, but string) bool {
	for table, fields := range g.keys {
		if table != but && slices.Contains(fields, value) {
			return true
		}
	}
	return false
}

// carries guesses the meaning of a parameter.
func (g *guess) carries(table, action string, i int) (manifest.Fact, string) {
	param := paramName(action, i)
	if f, ok := roleFacts[g.roles[param]]; ok {
		return f, roleReasons[g.roles[param]]
	}
	for _, field := range g.assigned(param) {
		if g.isKey(field, table) {
			return manifest.GroupID, "the key of another table"
		}
	}
	return "", ""
}

// table guesses the purpose of a table.
func (g *guess) table(t *configv1.Table, actions map[uint32]*configv1.Action) guessed {
	out := guessed{purpose: manifest.None, why: "no guess: the table stays empty until you give entries"}
	if t.GetIsConstTable() {
		return guessed{purpose: manifest.Program, why: "the program has its entries"}
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
		g.portIndex(name, &made)
		out.actions = append(out.actions, made)
	}
	fields := g.keys[name]
	names := lists.Map(t.GetActionRefs(), func(ref *configv1.ActionRef) string { return actions[ref.GetId()].GetPreamble().GetName() })
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
	case key(manifest.Destination) && has(manifest.EgressPort, manifest.GroupID, manifest.FirstMember, manifest.PathCount):
		out.purpose, out.why = manifest.Route, "its key is the destination, its actions set the next hop"
	case (key(manifest.SlotNumber) || key(manifest.MemberIndex)) && has(manifest.EgressPort):
		out.purpose, out.why = manifest.Member, "its key is the selected path, its actions set the next hop"
	case len(out.keys) == 1 && key(manifest.EgressPort) && has(manifest.OwnMAC, manifest.NextMAC):
		out.purpose, out.why = manifest.PortConfig, "its key is a port, its actions set properties of the port"
	}
	if g.writesOut(&out, fields, t.GetMatchFields(), names) {
		out.purpose = manifest.None
		return out
	}
	if f := unknownExact(out.keys, t.GetMatchFields()); out.purpose != manifest.None && f != "" {
		out.purpose, out.why = manifest.None, fmt.Sprintf("no guess: the values of the exact field %s are unknown, so give entries", f)
	}
	if to := g.hostAction(&out, fields); out.purpose == manifest.None && to != nil {
		out.why, out.each = "one entry per host: the program forwards by MAC", "host"
		out.keys[0].Carries, out.actions = manifest.HostMAC, []manifest.Action{*to}
	}
	return out
}

// portIndex corrects the guess for an action that sets a port and the key of another
// table: that table is about the port, not about a group.
func (g *guess) portIndex(table string, a *manifest.Action) {
	carries := func(f manifest.Fact) bool {
		return slices.ContainsFunc(a.Params, func(p manifest.Param) bool { return p.Carries == f })
	}
	if !carries(manifest.EgressPort) || carries(manifest.PathCount) {
		return
	}
	for i := range a.Params {
		if p := &a.Params[i]; p.Carries == manifest.GroupID {
			p.Carries = manifest.EgressPort
			g.notes[table+" "+a.Name+" "+p.Name] = "the key of another table, beside a port, so it may number the port"
		}
	}
}

// unknownExact returns the name of a field that is matched exactly and whose meaning is
// unknown, or "".
func unknownExact(keys []manifest.Key, fields []*configv1.MatchField) string {
	for i, f := range fields {
		if f.GetMatchType() == configv1.MatchField_EXACT && keys[i].Carries == "" {
			return f.GetName()
		}
	}
	return ""
}

// hostAction returns the action of a table that sends a packet to the host with
// its destination MAC, or nil if there is none or not all of its parameters are
// known.
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

// keyFact guesses the meaning of a field in a key.
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

// register guesses the content of a register.
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
	// Only direct sources count: a packet counter that is reset from time to
	// time is not a time.
	for _, f := range g.from[reg] {
		switch g.roles[f] {
		case clockTime:
			if strings.HasSuffix(f, "_global_timestamp") {
				r.Kind, r.Unit, why = manifest.Moment, manifest.Microseconds, because("it stores the clock")
			}
		case queued:
			r.Kind, r.Unit, why = manifest.QueueLength, manifest.Packets, because("it stores a queue length")
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
	g.fixed = g.fixedField(info.GetTables(), actions)
	var tables []guessed
	paths := false
	for _, t := range info.GetTables() {
		made := g.table(t, actions)
		paths = paths || made.purpose == manifest.Member
		g.perHost = g.perHost || made.purpose == manifest.Member && made.carries(manifest.HostAddress)
		tables = append(tables, made)
	}
	fmt.Fprintf(&b, "# The meaning of %s.p4 for p4lb. Lines marked as a guess were derived from the program:\n# check them and remove the mark. docs/manifest.md explains the keys.\n", name)
	line("", "version: %d", manifest.Version)
	line("", "scheme: %s", quoted(name))
	line("", "arch: %s", arch)
	if g.program != "" {
		line("", "program: %s", quoted(g.program))
	}
	if len(g.includes) > 0 {
		line("", "includes: [%s]", strings.Join(lists.Map(g.includes, quoted), ", "))
	}
	if len(g.defines) > 0 {
		line("", "defines: {%s}", strings.Join(g.defines, ", "))
	}
	if paths {
		line("the size of the largest group in a table", "paths: %d", manifest.MaxPaths)
	}
	if len(info.GetControllerPacketMetadata()) > 0 {
		line("the program exchanges packets with a controller", "cpu_port: 255")
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
	if len(made.lines) > 0 {
		line("", "  entries:")
		for _, text := range made.lines {
			line(made.why, "  - %s", text)
		}
		return
	}
	if g.perHost && (made.purpose == manifest.Route || made.purpose == manifest.Member) {
		made.why, made.each = "each host has its own paths, because a path rewrites the host's address", "host"
		if made.purpose == manifest.Member {
			made.each = "host path"
		}
	}
	if made.each != "" {
		size := t.GetSize()
		if size < smallTable {
			line("", "  # The table has room for %d entries: a network that needs more is refused.", size)
		}
		made.writeEntries(line, made.purpose == manifest.Member && size <= tinyTable)
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
			line("unknown, so it matches anything", "  - {name: %s, value: \"*\"}", quoted(k.Name))
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
				line("unknown", "    - {name: %s, value: \"0\"}", quoted(p.Name))
				continue
			}
			line(g.notes[name+" "+a.Name+" "+p.Name], "    - {name: %s, carries: %s}", quoted(p.Name), p.Carries)
		}
	}
}

// hostExprs are the expressions for facts in the entries of hosts.
var hostExprs = map[manifest.Fact]string{
	manifest.Destination: "$host-address/32", manifest.GroupID: "$host",
	manifest.FirstMember: "$first-path", manifest.MemberIndex: "$path",
}

// writeEntries writes the entries of a table with entries for each host. With saves, the
// local host uses the default action, so that entries for paths to other switches fit.
func (t *guessed) writeEntries(line func(why, format string, args ...any), saves bool) {
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
		call := fmt.Sprintf("action: %s, args: {%s}", quoted(a.Name), strings.Join(args, ", "))
		line("", "  entries:")
		if !saves {
			line(t.why, "  - {each: %s, match: {%s}, %s}", t.each, strings.Join(match, ", "), call)
			return
		}
		line(t.why, "  - {each: %s, where: \"!$here\", match: {%s}, %s}", t.each, strings.Join(match, ", "), call)
		line("the table has no room for the local host, so it uses the default action", "  - {default: true, each: host, where: $here, %s}", call)
		return
	}
}

// writeShape writes the form of an entry as a comment.
func (g *guess) writeShape(line func(why, format string, args ...any), t *configv1.Table, actions map[uint32]*configv1.Action) {
	if t.GetIsConstTable() {
		return
	}
	line("", "  # entries:")
	// An action without parameters is often the default, unless the table has no other.
	bare := !slices.ContainsFunc(t.GetActionRefs(), func(ref *configv1.ActionRef) bool { return len(actions[ref.GetId()].GetParams()) > 0 })
	for _, ref := range t.GetActionRefs() {
		a := actions[ref.GetId()]
		if ref.GetScope() == configv1.ActionRef_DEFAULT_ONLY || len(a.GetParams()) == 0 && !bare || a.GetPreamble().GetName() == "NoAction" && len(t.GetActionRefs()) > 1 {
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

// smallTable is the size below which a table may have no room for the entries of
// all hosts and paths.
const smallTable = 256

// tinyTable is the largest size of a table that has no room for the paths to local
// hosts.
const tinyTable = 8

// noLink is the number of a port that probably has no link.
const noLink = 500

// writeSessions writes the program's clone sessions.
func (g *guess) writeSessions(line func(why, format string, args ...any)) {
	sessions := g.cloneSessions()
	if len(sessions) == 0 {
		return
	}
	round := g.recirculates()
	line("", "clone_sessions:")
	for _, s := range sessions {
		if round {
			line("copies recirculate, so use a port without a link", "- {session: %d, port: %d}", s, noLink)
		} else {
			line("the port is unknown", "- {session: %d, port: 1}", s)
		}
	}
	if round {
		line("", "virtual_ports:")
		line("", "- {port: %d, kind: recirculation}", noLink)
	}
}

// quoted writes a word in YAML, with quotes if necessary.
func quoted(text string) string {
	plain := strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && r != '.' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
	if plain && text != "" && (text[0] < '0' || text[0] > '9') && text[0] != '.' {
		return text
	}
	return fmt.Sprintf("%q", text)
}
