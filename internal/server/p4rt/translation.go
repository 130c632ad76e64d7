package p4rt

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A translation maps the values of a type with @p4runtime_translation("…",
// string) to numbers in the data plane. The specification leaves the mapping to
// the target. Here:
//
//   - a string listed in @p4runtime_translation_mappings has the listed number,
//   - a decimal number stands for itself, unless that number has another name,
//   - any other string gets the lowest free number, starting at 1, when it is first used,
//     and keeps it.
//
// A number without a name is written in decimal. Each number in a packet
// therefore has one string, and no two numbers have the same string.
type translation struct {
	typ string

	mu      sync.Mutex // digests and packets arrive while requests are served
	width   int        // of the numbers; 0 until fitNames has run
	numbers map[string]uint64
	texts   map[uint64]string
	next    uint64 // all lower numbers are taken
}

// maxText is the length of the longest string that controllers may use.
const maxText = 1 << 10

// mapping matches one pair of a @p4runtime_translation_mappings annotation.
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

// bind maps a string and a number to each other if both are free.
func (t *translation) bind(text string, n uint64) {
	_, named := t.numbers[text]
	_, taken := t.texts[n]
	if !named && !taken {
		t.numbers[text], t.texts[n] = n, text
	}
}

// fit records a width in bits of the type's values in the program.
func (t *translation) fit(width int) {
	if t.width == 0 || width < t.width {
		t.width = width
	}
}

// number returns the number for a string, in canonical form.
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

// text returns the string for a number of the data plane.
func (t *translation) text(b []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := num.Uint64(b)
	if text, ok := t.texts[n]; ok {
		return []byte(text)
	}
	return strconv.AppendUint(nil, n, 10)
}

// keep returns the string for a number in the program and reserves it.
func (t *translation) keep(b []byte) []byte {
	text := t.text(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bind(string(text), num.Uint64(b))
	return text
}

// inherit copies the mapping from another program.
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

// translations are the translated types of a P4Info by name, created on demand.
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

// parseValue checks a value, a number or a string, and returns it as a
// canonical number. It replaces a non-canonical number in the message.
func parseValue(field *[]byte, width int, names *translation) ([]byte, error) {
	if names != nil {
		return names.number(*field)
	}
	return canonize(field, width)
}

// showValue converts a number of the program to a value for messages.
func showValue(b []byte, names *translation) []byte {
	if names != nil {
		return names.keep(b)
	}
	return canonical(b)
}

// canonical returns the shortest form of a number.
func canonical(b []byte) []byte {
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	if len(b) == 0 {
		return []byte{0}
	}
	return b
}

// unsigned checks that b encodes a bit<width> and returns its canonical form,
// which shares b's memory.
func unsigned(b []byte, width int) ([]byte, error) {
	if len(b) == 0 {
		return nil, failf(codes.OutOfRange, "an empty byte string is no number: zero is \\x00")
	}
	b = canonical(b)
	if n := num.BitLen(b); n > width {
		return nil, failf(codes.OutOfRange, "%v takes %d bits, more than the %d of the type", hexed(b), n, width)
	}
	return b, nil
}

// canonize replaces an unsigned byte string in a message by its canonical form.
// It does not write to one that is canonical already, because readers share
// stored messages.
func canonize(field *[]byte, width int) ([]byte, error) {
	b, err := unsigned(*field, width)
	if err == nil && len(b) != len(*field) {
		*field = b
	}
	return b, err
}

// signed checks that b encodes an int<width> in two's complement and returns
// its canonical form, which shares b's memory.
func signed(b []byte, width int) ([]byte, error) {
	if len(b) == 0 {
		return nil, failf(codes.OutOfRange, "an empty byte string is no number: zero is \\x00")
	}
	for len(b) > 1 && num.IsSignExtension(b[0], b[1]) {
		b = b[1:]
	}
	if n := num.SignedBitLen(b); n > width {
		return nil, failf(codes.OutOfRange, "%v takes %d bits, more than the %d of the signed type", hexed(b), n, width)
	}
	return b, nil
}
