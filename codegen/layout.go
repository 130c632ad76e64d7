package codegen

import "strings"

// layOut indents a program by its brackets, and removes what templates leave
// behind: blank lines that double, or stand next to a brace, and an else on a
// line of its own.
func layOut(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimSpace(line)
		last := len(lines) - 1
		switch {
		case line == "" && (last < 0 || lines[last] == "" || strings.HasSuffix(lines[last], "{") || strings.HasSuffix(lines[last], "else")):
		case strings.HasPrefix(line, "}") && last >= 0 && lines[last] == "":
			lines[last] = line
		case last >= 0 && strings.HasSuffix(lines[last], "} else"):
			lines[last] += " " + line
		default:
			lines = append(lines, line)
		}
	}
	var b strings.Builder
	depth := 0
	for _, line := range lines {
		opened, closed := brackets(line)
		if line != "" {
			b.WriteString(strings.Repeat("    ", max(0, depth-leading(line))))
			b.WriteString(line)
		}
		b.WriteByte('\n')
		depth += opened - closed
	}
	return b.String()
}

// brackets counts the brackets of a line outside its comment.
func brackets(line string) (opened, closed int) {
	code, _, _ := strings.Cut(line, "//")
	for _, r := range code {
		switch r {
		case '{', '(':
			opened++
		case '}', ')':
			closed++
		}
	}
	return opened, closed
}

// leading counts the closing brackets that a line starts with.
func leading(line string) int {
	return len(line) - len(strings.TrimLeft(line, "})"))
}
