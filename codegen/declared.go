package codegen

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	headerLine = regexp.MustCompile(`^header (\w+)_t \{$`)
	typeLine   = regexp.MustCompile(`^typedef bit<(\d+)> (\w+);`)
	fieldLine  = regexp.MustCompile(`^    (?:bit<(\d+)>|(\w+)) +(\w+);(?: +// (.*))?$`)
	actionLine = regexp.MustCompile(`^    action (\w+)\((.*)\) \{$`)
	tableLine  = regexp.MustCompile(`^    table (\w+) \{$`)
	keyLine    = regexp.MustCompile(`^            ([\w.]+): (\w+);$`)
	entryLine  = regexp.MustCompile(`^            (\w+);$`)
	joined     = regexp.MustCompile(`,\n +`) // lists that go on
	blockLine  = regexp.MustCompile(`^control (\w+)\(`)
)

// declared completes the manifest with what the program itself says: the fields
// of headers, the keys and the actions of tables. The lines are layOut's.
func (m *Manifest) declared(text string) error {
	headers := map[string]*Header{}
	for i := range m.Headers {
		headers[m.Headers[i].Name] = &m.Headers[i]
	}
	tables := map[string]*Table{}
	for i := range m.Tables {
		tables[m.Tables[i].Name] = &m.Tables[i]
	}
	var control, unknown string
	var header *Header
	var table *Table
	actions, types := map[string]string{}, map[string]string{"PortId_t": "9"}
	for line := range strings.Lines(joined.ReplaceAllString(text, ", ")) {
		line = strings.TrimSuffix(line, "\n")
		if f := blockLine.FindStringSubmatch(line); f != nil {
			control = f[1]
		} else if f := headerLine.FindStringSubmatch(line); f != nil {
			header = headers[f[1]]
		} else if f := typeLine.FindStringSubmatch(line); f != nil {
			types[f[2]] = f[1]
		} else if f := fieldLine.FindStringSubmatch(line); f != nil && header != nil {
			width, err := strconv.Atoi(f[1] + types[f[2]])
			if err != nil {
				return fmt.Errorf("header %s: field %s of the type %s, whose width is not known", header.Name, f[3], f[2])
			}
			header.Fields = append(header.Fields, Field{f[3], width, f[4]})
		} else if f := actionLine.FindStringSubmatch(line); f != nil {
			actions[f[1]] = f[1] + "(" + parameterNames(f[2]) + ")"
		} else if f := tableLine.FindStringSubmatch(line); f != nil {
			if table, unknown = tables[control+"."+f[1]], ""; table == nil {
				unknown = control + "." + f[1]
			}
		} else if line == "        const entries = {" {
			unknown = "" // the program fills it itself
		} else if f := keyLine.FindStringSubmatch(line); f != nil && table != nil {
			table.Keys = append(table.Keys, f[1]+": "+f[2])
		} else if f := entryLine.FindStringSubmatch(line); f != nil && table != nil {
			table.Actions = append(table.Actions, actions[f[1]])
		} else if line == "}" {
			header = nil
		} else if line == "    }" {
			if table = nil; unknown != "" {
				return fmt.Errorf("the manifest does not know table %s", unknown)
			}
		}
	}
	return nil
}

// parameterNames drops the types of a parameter list.
func parameterNames(list string) string {
	if list == "" {
		return ""
	}
	params := strings.Split(list, ", ")
	for i, p := range params {
		params[i] = p[strings.LastIndexByte(p, ' ')+1:]
	}
	return strings.Join(params, ", ")
}
