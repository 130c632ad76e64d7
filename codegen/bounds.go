package codegen

import (
	"bytes"
	"fmt"
	"text/template"
	"text/template/parse"
)

// The templates of a user's block are programs. They may loop forever, or double
// their output repeatedly. So both the length of the output and the number of
// writes are limited. Each template and each loop iteration starts with an empty
// write, which counts too.

const (
	maxSteps = 1 << 20 // steps of templates for one program
	maxText  = 8 << 20 // bytes of a template's text
)

var (
	errSteps = fmt.Errorf("its templates take more than %d steps", maxSteps)
	errText  = fmt.Errorf("it writes more than %d MiB", maxText>>20)
)

// A bounded is a text with a size limit. It also counts the steps of templates, over all texts of
// a program.
type bounded struct {
	bytes.Buffer
	steps *int
}

// Write implements io.Writer.
func (b *bounded) Write(text []byte) (int, error) {
	if *b.steps++; *b.steps > maxSteps {
		return 0, errSteps
	}
	if b.Len()+len(text) > maxText {
		return 0, errText
	}
	return b.Buffer.Write(text)
}

// turns inserts an empty write at the start of a list and of all lists in it, so
// that each iteration counts as a step.
func turns(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.IfNode:
			turns(n.List)
			turns(n.ElseList)
		case *parse.WithNode:
			turns(n.List)
			turns(n.ElseList)
		case *parse.RangeNode:
			turns(n.List)
			turns(n.ElseList)
		}
	}
	nothing := &parse.TextNode{NodeType: parse.NodeText, Pos: list.Pos}
	list.Nodes = append([]parse.Node{nothing}, list.Nodes...)
}

// printing lists the template functions that can create a long text from a short
// one.
var printing = template.FuncMap{
	"print":   func(args ...any) (string, error) { return short(fmt.Sprint(args...)) },
	"println": func(args ...any) (string, error) { return short(fmt.Sprintln(args...)) },
	"printf":  func(format string, args ...any) (string, error) { return short(fmt.Sprintf(format, args...)) },
	"js":      func(args ...any) (string, error) { return short(template.JSEscaper(args...)) },
}

// short returns an error for a text that is too long.
func short(text string) (string, error) {
	const most = 1 << 20
	if len(text) > most {
		return "", fmt.Errorf("a text of %d bytes, more than %d", len(text), most)
	}
	return text, nil
}
