package syntax

import (
	"math/big"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/token"
)

// maxDigits bounds an integer literal, so that no input can make the arithmetic
// slow. It exceeds the 2,048 bits of p4c's widest type.
const maxDigits = 4096

// maxWidth bounds the width prefix of a literal, so that it fits an int. It is far
// above the checker's limit.
const maxWidth = 1 << 20

// An intValue is the value of an integer literal.
type intValue struct {
	value  *big.Int
	width  int
	signed bool
}

// parseInt parses an integer literal: [width (w|s)] [0x|0d|0o|0b] digits. The
// string wrong describes the error; it is empty if there is none.
func parseInt(text string) (lit intValue, wrong string) {
	digits := text
	lit.value = new(big.Int)
	if i := strings.IndexAny(text, "ws"); i > 0 && isDecimal(text[:i]) {
		digits = text[i+1:]
		lit.signed = text[i] == 's'
		for _, c := range text[:i] {
			if lit.width = lit.width*10 + int(c-'0'); lit.width > maxWidth {
				return lit, "width is too large"
			}
		}
	}
	base := 10
	if len(digits) > 1 && digits[0] == '0' {
		switch digits[1] | 0x20 {
		case 'x':
			base = 16
		case 'd':
			base = -10
		case 'o':
			base = 8
		case 'b':
			base = 2
		}
	}
	if base != 10 {
		digits = digits[2:]
		base = max(base, -base)
	}
	digits = strings.ReplaceAll(digits, "_", "")
	switch {
	case digits == "":
		return lit, "malformed integer"
	case len(digits) > maxDigits:
		return lit, "integer is too long"
	}
	for i := range len(digits) {
		if digitValue(digits[i]) >= base {
			return lit, "malformed integer"
		}
	}
	if len(digits) < 16 { // fits into 64 bits in any base
		n := int64(0)
		for i := range len(digits) {
			n = n*int64(base) + int64(digitValue(digits[i]))
		}
		lit.value.SetInt64(n)
	} else {
		lit.value.SetString(digits, base)
	}
	return lit, ""
}

func digitValue(c byte) int {
	switch {
	case token.IsDigit(c):
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return 99
}

// unquote returns the value of a string literal. It resolves only the escapes \"
// and \\; the language leaves others to the reader of the string.
func unquote(lit string) string {
	s := lit[1 : len(lit)-1]
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\') {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// quote returns a string literal with value s. It doubles a backslash only if the
// backslash would be read as an escape or as a line continuation.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		c := s[i]
		if c == '"' || c == '\\' && (i+1 == len(s) || s[i+1] == '"' || s[i+1] == '\\' || continuation(s[i:]) > 0) {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	b.WriteByte('"')
	return b.String()
}

func isDecimal(s string) bool {
	for i := range len(s) {
		if !token.IsDigit(s[i]) {
			return false
		}
	}
	return s != ""
}
