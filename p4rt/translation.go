package p4rt

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"github.com/p4lb/p4lb/dataplane/num"
	"google.golang.org/grpc/codes"
)

// A translation gives the values of a type with @p4runtime_translation("…",
// string) their numbers in the data plane. The specification leaves open how;
// here
//
//   - a string that the program lists in @p4runtime_translation_mappings has
//     the number that it says,
//   - a decimal number stands for itself, unless that number has another name,
//   - any other string is given a number of its own when it is first used, from
//     1 on, and keeps it.
//
// A number that has no name is written in decimal, so that each of the values
// that packets bring has one string and no two have the same.
type translation struct {
	typ string

	mu      sync.Mutex // digests and packets come while requests are served
	width   int        // of the numbers; 0 before the program has been looked at
	numbers map[string]uint64
	texts   map[uint64]string
	next    uint64 // no number below it is free
}

// maxText bounds the strings of controllers.
const maxText = 1 << 10

// mapping is one pair of a @p4runtime_translation_mappings.
var mapping = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\s*("(?:[^"\\]|\\.)*")\s*,\s*(0[xX][0-9a-fA-F]+|[0-9]+)\s*,?\s*\}`)
})

const mappingsPrefix = "@p4runtime_translation_mappings"

func newTranslation(name string, t *configv1.P4NewTypeSpec) *translation {
	tr := &translation{typ: name, numbers: map[string]uint64{}, texts: map[uint64]string{}, next: 1}
	for _, a := range t.GetAnnotations() {
		if !strings.HasPrefix(a, mappingsPrefix) {
			continue
		}
		for _, pair := range mapping().FindAllStringSubmatch(a, -1) {
			text, err := strconv.Unquote(pair[1])
			n, err2 := strconv.ParseUint(pair[2], 0, 64)
			if err == nil && err2 == nil {
				tr.bind(text, n)
			}
		}
	}
	return tr
}

// bind gives a string and a number to each other, if both are free.
func (t *translation) bind(text string, n uint64) {
	_, named := t.numbers[text]
	_, taken := t.texts[n]
	if !named && !taken {
		t.numbers[text], t.texts[n] = n, text
	}
}

// fit notes that the program has the type's values in so many bits.
func (t *translation) fit(width int) {
	if t.width == 0 || width < t.width {
		t.width = width
	}
}

// number is what the data plane has for a string, in canonical form.
func (t *translation) number(text []byte) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find(string(text))
	if err != nil {
		return nil, err
	}
	return num.Shortest([]uint64{n}, 64), nil
}

func (t *translation) find(text string) (uint64, error) {
	if n, ok := t.numbers[text]; ok {
		return n, nil
	}
	if text == "" || len(text) > maxText {
		return 0, failf(codes.InvalidArgument, "type %s: the string has %d bytes, want 1 to %d", t.typ, len(text), maxText)
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && strconv.FormatUint(n, 10) == text {
		if other, ok := t.texts[n]; ok {
			return 0, failf(codes.InvalidArgument, "type %s: %s is the number of %q", t.typ, text, other)
		}
		if n > t.largest() {
			return 0, failf(codes.OutOfRange, "type %s: %s takes more than %d bits", t.typ, text, t.width)
		}
		t.bind(text, n)
		return n, nil
	}
	for ; t.next <= t.largest() && t.next != 0; t.next++ {
		if _, taken := t.texts[t.next]; !taken {
			t.bind(text, t.next)
			return t.next, nil
		}
	}
	return 0, failf(codes.ResourceExhausted, "type %s: all numbers of %d bits have names", t.typ, t.width)
}

func (t *translation) largest() uint64 { return 1<<t.width - 1 }

// text is the string for a number of the data plane.
func (t *translation) text(b []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := num.Uint64(b)
	if text, ok := t.texts[n]; ok {
		return []byte(text)
	}
	return strconv.AppendUint(nil, n, 10)
}

// keep is text for a number in the program, which no other string may get.
func (t *translation) keep(b []byte) []byte {
	text := t.text(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bind(string(text), num.Uint64(b))
	return text
}

// inherit takes over the numbers that strings had in another program.
func (t *translation) inherit(old *translation) {
	old.mu.Lock()
	defer old.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for text, n := range old.numbers {
		if n <= t.largest() {
			t.bind(text, n)
		}
	}
}

// names is the translation of a type, nil if its values are numbers.
func (in *info) names(typ *configv1.P4NamedType) *translation {
	return in.translations.of(in.proto.GetTypeInfo(), typ.GetName())
}

// translations are those of a P4Info by type, each made when it is first met.
type translations map[string]*translation

func (l translations) of(types *configv1.P4TypeInfo, name string) *translation {
	t := types.GetNewTypes()[name]
	if t.GetTranslatedType().GetSdnString() == nil {
		return nil
	}
	if l[name] == nil {
		l[name] = newTranslation(name, t)
	}
	return l[name]
}

// fitNames finds out how wide the types are that are translated to strings:
// P4Info does not say, the program does. It precedes the first string.
func (p *pipeline) fitNames() error {
	if len(p.info.translations) == 0 {
		return nil
	}
	for _, t := range p.info.tables {
		key, _, err := p.sw.TableKey(t.name)
		for i, f := range t.fields {
			if f.names != nil && err == nil && i < len(key) {
				f.names.fit(key[i].Width)
			}
		}
	}
	for _, a := range p.info.actions {
		widths, err := p.sw.ActionWidths(a.name)
		for i, f := range a.params {
			if f.names != nil && err == nil && i < len(widths) {
				f.names.fit(widths[i])
			}
		}
	}
	for _, r := range p.info.registers {
		if _, width, err := p.sw.RegisterInfo(r.name); err == nil && r.data.names != nil {
			r.data.names.fit(width)
		}
	}
	for _, d := range p.info.digests {
		widths, err := p.sw.DigestWidths(d.name)
		for i, l := range d.data.leaves() {
			if l.names != nil && err == nil && i < len(widths) {
				l.names.fit(widths[i])
			}
		}
	}
	return p.info.setWidths()
}

// setWidths gives all that is translated to strings the width of its numbers.
func (in *info) setWidths() error {
	for _, t := range in.translations {
		if t.width <= 0 || t.width > 64 {
			return failf(codes.InvalidArgument, "p4info: type %s is translated to strings and has %d bits in the program, want 1 to 64", t.typ, t.width)
		}
		for text, n := range t.numbers {
			if n > t.largest() {
				return failf(codes.InvalidArgument, "p4info: type %s: the number %d of %q takes more than %d bits", t.typ, n, text, t.width)
			}
		}
	}
	for _, t := range in.tables {
		setFieldWidths(t.fields)
	}
	for _, v := range in.valueSets {
		setFieldWidths(v.fields)
	}
	for _, a := range in.actions {
		setParamWidths(a.params)
	}
	for _, r := range in.registers {
		r.data.setWidths()
	}
	for _, d := range in.digests {
		d.data.setWidths()
	}
	for _, h := range []*packetHeader{in.packetIn, in.packetOut} {
		if h != nil {
			h.bits = setParamWidths(h.fields)
		}
	}
	return nil
}

func setFieldWidths(list []fieldInfo) {
	for i := range list {
		if list[i].names != nil {
			list[i].width = list[i].names.width
		}
	}
}

// setParamWidths returns the sum of all widths.
func setParamWidths(list []paramInfo) (sum int) {
	for i := range list {
		if list[i].names != nil {
			list[i].width = list[i].names.width
		}
		sum += list[i].width
	}
	return sum
}

func (t *dataType) setWidths() {
	for _, l := range t.leaves() {
		if l.names != nil {
			l.width = l.names.width
		}
	}
}

// parseValue checks a value, a number or a string, and returns it as a number
// in canonical form. A number that is in another form is replaced.
func parseValue(field *[]byte, width int, names *translation) ([]byte, error) {
	if names != nil {
		return names.number(*field)
	}
	return canonize(field, width)
}

// showValue is the reverse of parseValue for what is in the program.
func showValue(b []byte, names *translation) []byte {
	if names != nil {
		return names.keep(b)
	}
	return canonical(b)
}
