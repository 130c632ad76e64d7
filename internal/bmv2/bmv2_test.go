package bmv2

import (
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// small is a program with most kinds of objects.
const small = `{
  "header_types" : [
    {
      "name" : "meta",
      "id" : 0,
      "fields" : [
        ["x", 8, false],
        ["y", 16, true]
      ]
    },
    {
      "name" : "var",
      "id" : 1,
      "fields" : [
        ["n", 8, false],
        ["v", "*"]
      ],
      "max_length" : 20
    }
  ],
  "headers" : [
    {
      "name" : "m",
      "id" : 0,
      "header_type" : "meta",
      "metadata" : true,
      "pi_omit" : true
    },
    {
      "name" : "v[0]",
      "id" : 1,
      "header_type" : "var",
      "metadata" : false
    }
  ],
  "header_stacks" : [
    {
      "name" : "v",
      "id" : 0,
      "header_type" : "var",
      "size" : 1,
      "header_ids" : [1]
    }
  ],
  "header_union_types" : [],
  "header_unions" : [],
  "header_union_stacks" : [],
  "field_lists" : [],
  "errors" : [
    ["NoError", 0],
    ["PacketTooShort", 1]
  ],
  "enums" : [],
  "parsers" : [
    {
      "name" : "parser",
      "id" : 0,
      "init_state" : "start",
      "parse_states" : [
        {
          "name" : "start",
          "id" : 0,
          "parser_ops" : [
            {
              "parameters" : [
                {
                  "type" : "stack",
                  "value" : "v"
                },
                {
                  "type" : "expression",
                  "value" : {
                    "type" : "expression",
                    "value" : {
                      "op" : "<<",
                      "left" : {
                        "type" : "field",
                        "value" : ["m", "x"]
                      },
                      "right" : {
                        "type" : "hexstr",
                        "value" : "0x03"
                      }
                    }
                  }
                }
              ],
              "op" : "extract_VL"
            }
          ],
          "transitions" : [
            {
              "type" : "hexstr",
              "value" : "0x01",
              "mask" : null,
              "next_state" : null
            }
          ],
          "transition_key" : [
            {
              "type" : "lookahead",
              "value" : [0, 8]
            }
          ]
        }
      ]
    }
  ],
  "parse_vsets" : [],
  "deparsers" : [],
  "meter_arrays" : [],
  "counter_arrays" : [],
  "register_arrays" : [
    {
      "name" : "r",
      "id" : 0,
      "size" : 4,
      "bitwidth" : 8
    }
  ],
  "calculations" : [],
  "learn_lists" : [],
  "actions" : [
    {
      "name" : "set",
      "id" : 0,
      "runtime_data" : [
        {
          "name" : "p",
          "bitwidth" : 8
        }
      ],
      "primitives" : [
        {
          "op" : "assign",
          "parameters" : [
            {
              "type" : "field",
              "value" : ["m", "x"]
            },
            {
              "type" : "runtime_data",
              "value" : 0
            }
          ],
          "source_info" : {
            "filename" : "a.p4",
            "line" : 3,
            "column" : 4,
            "source_fragment" : "m.x = \"<p>\""
          }
        }
      ]
    }
  ],
  "pipelines" : [
    {
      "name" : "ingress",
      "id" : 0,
      "init_table" : "t",
      "tables" : [
        {
          "name" : "t",
          "id" : 0,
          "key" : [
            {
              "match_type" : "lpm",
              "name" : "m.y",
              "target" : ["m", "y"],
              "mask" : null
            }
          ],
          "match_type" : "lpm",
          "type" : "simple",
          "max_size" : 8,
          "with_counters" : false,
          "support_timeout" : false,
          "direct_meters" : null,
          "action_ids" : [0],
          "actions" : ["set"],
          "base_default_next" : null,
          "next_tables" : {
            "set" : "c"
          },
          "default_entry" : {
            "action_id" : 0,
            "action_const" : false,
            "action_data" : ["0x1"],
            "action_entry_const" : false
          },
          "entries" : [
            {
              "match_key" : [
                {
                  "match_type" : "lpm",
                  "key" : "0x0100",
                  "prefix_length" : 8
                }
              ],
              "action_entry" : {
                "action_id" : 0,
                "action_data" : ["0x2"]
              },
              "priority" : 1
            }
          ]
        }
      ],
      "action_profiles" : [],
      "conditionals" : [
        {
          "name" : "c",
          "id" : 0,
          "expression" : {
            "type" : "bool",
            "value" : true
          },
          "true_next" : null,
          "false_next" : null
        }
      ]
    }
  ],
  "checksums" : [],
  "force_arith" : [],
  "extern_instances" : [],
  "field_aliases" : [
    [
      "standard_metadata.egress_spec",
      ["m", "y"]
    ]
  ],
  "program" : "a.p4",
  "__meta__" : {
    "version" : [2, 23],
    "compiler" : "none"
  }
}
`

func write(t testing.TB, c *Config) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWriteGivesBackWhatLoadRead(t *testing.T) {
	c, err := Load([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if got := write(t, c); got != small {
		t.Errorf("got\n%s", got)
	}
	if f := c.HeaderTypes[1].Fields[1]; !f.VarLen || f.Width != 0 {
		t.Errorf("variable-length field %+v", f)
	}
	if e := c.Parsers[0].ParseStates[0].ParserOps[0].Parameters[1]; e.Unwrap().Op != "<<" {
		t.Errorf("length %v", e)
	}
}

// TestP4CDocuments loads and writes documents of p4c: writing is a fixpoint and
// uses p4c's layout.
func TestP4CDocuments(t *testing.T) {
	files, err := filepath.Glob("../dataplane/testdata/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	same := 0
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Load(data)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		out := write(t, c)
		again, err := Load([]byte(out))
		if err != nil {
			t.Errorf("%s, written: %v", f, err)
			continue
		}
		if !reflect.DeepEqual(c, again) {
			t.Errorf("%s: writing loses information", f)
		}
		if strings.TrimSpace(out) == strings.TrimSpace(string(data)) {
			same++
		}
	}
	if same < 2 {
		t.Errorf("%d of %d documents are unchanged byte for byte", same, len(files))
	}
}

// TestExprForms tests every form of an expression as written by p4c.
func TestExprForms(t *testing.T) {
	for _, c := range []struct {
		json string
		want *Expr
	}{
		{`{"type":"field","value":["h","f"]}`, FieldOf("h", "f")},
		{`{"type":"hexstr","value":"-0x0a"}`, HexInt(-10, 1)},
		{`{"type":"hexstr","value":"0x00ff","bitwidth":9}`, &Expr{Type: TypeHexstr, Hex: "0x00ff", Bitwidth: 9}},
		{`{"type":"bool","value":true}`, BoolOf(true)},
		{`{"type":"string","value":"a {}"}`, Ref(TypeString, "a {}")},
		{`{"type":"header","value":"h"}`, Ref(TypeHeader, "h")},
		{`{"type":"header_stack","value":"s"}`, Ref(TypeHeaderStack, "s")},
		{`{"type":"header_union","value":"u"}`, Ref(TypeHeaderUnion, "u")},
		{`{"type":"header_union_stack","value":"u"}`, Ref(TypeHeaderUnionStack, "u")},
		{`{"type":"stack_field","value":["s","f"]}`, &Expr{Type: TypeStackField, Name: "s", Field: "f"}},
		{`{"type":"union_stack_field","value":["s","m","f"]}`, &Expr{Type: TypeUnionStackField, Name: "s", Member: "m", Field: "f"}},
		{`{"type":"union_stack","value":["s","m"]}`, &Expr{Type: TypeUnionStack, Name: "s", Member: "m"}},
		{`{"type":"regular","value":"h"}`, Ref(TypeRegular, "h")},
		{`{"type":"lookahead","value":[3,16]}`, Lookahead(3, 16)},
		{`{"type":"local","value":2}`, Local(2)},
		{`{"type":"runtime_data","value":2}`, RuntimeData(2)},
		{`{"type":"calculation","value":"c"}`, Ref(TypeCalculation, "c")},
		{`{"type":"register","value":["r",{"type":"hexstr","value":"0x1"}]}`, &Expr{Type: TypeRegister, Name: "r", Right: HexInt(1, 0)}},
		{`{"type":"register_array","value":"r"}`, Ref(TypeRegisterArray, "r")},
		{`{"type":"counter_array","value":"k"}`, Ref(TypeCounterArray, "k")},
		{`{"type":"meter_array","value":"m"}`, Ref(TypeMeterArray, "m")},
		{`{"type":"filter_array","value":"f"}`, Ref(TypeFilterArray, "f")},
		{`{"type":"extern","value":"e"}`, Ref(TypeExtern, "e")},
		{`{"type":"payload","value":null}`, &Expr{Type: TypePayload}},
		{`{"type":"parameters_vector","value":{}}`, Vector()},
		{`{"type":"parameters_vector","value":[{"type":"local","value":0}]}`, Vector(Local(0))},
		{`{"type":"expression","value":{"op":"not","left":null,"right":{"type":"bool","value":false}}}`, Op1("not", BoolOf(false))},
		{`{"type":"expression","value":{"op":"+","left":{"type":"local","value":0},"right":{"type":"local","value":1}}}`, Op2("+", Local(0), Local(1))},
		{`{"type":"expression","value":{"op":"?","left":{"type":"local","value":0},"right":{"type":"local","value":1},"cond":{"type":"bool","value":true}}}`, Cond(BoolOf(true), Local(0), Local(1))},
		{`{"type":"expression","value":{"op":"access_field","left":{"type":"header","value":"h"},"right":3}}`, Op2("access_field", Ref(TypeHeader, "h"), &Expr{Int: 3})},
		{`{"type":"expression","value":{"type":"stack_field","value":["s","f"]}}`, Wrap(&Expr{Type: TypeStackField, Name: "s", Field: "f"})},
		{`7`, &Expr{Int: 7}},
	} {
		n, err := parseNode([]byte(c.json))
		if err != nil {
			t.Fatal(err)
		}
		var d decoder
		got := d.expr(n)
		if d.err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s is read as %+v, %v", c.json, got, d.err)
		}
		var b bytes.Buffer
		c.want.encodeNode().write(&b, 0)
		if out := strings.NewReplacer(" ", "", "\n", "").Replace(b.String()); out != strings.ReplaceAll(c.json, " ", "") {
			t.Errorf("%s is written as %s", c.json, out)
		}
	}
}

// TestLoadErrors: an error contains the path of the faulty value.
func TestLoadErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{small, "", "reading JSON: unexpected end after 0 bytes"},
		{small, small + "{", "text after the document"},
		{small, strings.Repeat("[", maxDepth+2), "nested too deeply"},
		{small, "[]", "expected an object, found an array"},
		{small, `{"a" : [1, 2`, "reading JSON: unexpected end after 12 bytes"},
		{small, `{"a" : [1 2]}`, `reading JSON at byte 10: found '2', want a comma or ']'`},
		{small, `{"a" : 1, }`, `reading JSON at byte 10: found '}', want a key in quotes`},
		{small, `{"a" 1}`, `reading JSON at byte 5: found '1', want a colon`},
		{small, `{"a" : yes}`, `reading JSON at byte 7: found 'y', want a value`},
		{small, `{"a" : 007}`, "reading JSON at byte 7: 007 is not a number"},
		{small, `{"a" : "\x"}`, "reading JSON at byte 7: invalid character 'x' in string escape code"},
		{small, "{\"a\" : \"\n\"}", `reading JSON at byte 8: found '\n', want an escape sequence: control characters are not allowed in a string`},
		{`["x", 8, false]`, `["x", "8", false]`, "header_types[0].fields[0][1]: expected a number, found a string"},
		{`["x", 8, false]`, `["x", 0, false]`, "header_types[0].fields[0]: width 0 of meta.x is outside"},
		{`["x", 8, false]`, `["y", 8, false]`, `header_types[0].fields[1]: field name "y" is empty or not unique`},
		{`"header_type" : "meta"`, `"header_type" : "met"`, `headers[0]: unknown header type "met"`},
		{`"header_ids" : [1]`, `"header_ids" : [2]`, "header_stacks[0].header_ids[0]: unknown id 2"},
		{`"header_ids" : [1]`, `"header_ids" : [0]`, "header_stacks[0].header_ids[0]: id 0 is of type meta, expected var"},
		{`"init_state" : "start"`, `"init_state" : "begin"`, `parsers[0]: unknown init_state "begin"`},
		{`"type" : "stack",`, `"type" : "heap",`, `parsers[0].parse_states[0].parser_ops[0].parameters[0].value: unknown type "heap"`},
		{`"value" : [0, 8]`, `"value" : [0]`, "parsers[0].parse_states[0].transition_key[0].value: an array of 1 elements: want 2 to 2"},
		{`"value" : "0x03"`, `"value" : "0x0g"`, `right.value: "0x0g" is not a hexadecimal number`},
		{`"bitwidth" : 8`, `"bitwidth" : 1.5`, "register_arrays[0].bitwidth: 1.5 is not a 64-bit integer"},
		{`"target" : ["m", "y"]`, `"target" : ["m", "z"]`, `pipelines[0].tables[0].key[0].target: header type meta has no field "z"`},
		{`"init_table" : "t"`, `"init_table" : "s"`, `pipelines[0].init_table: unknown node "s"`},
		{`"set" : "c"`, `"set" : "d"`, `pipelines[0].tables[0].next_tables.set: unknown node "d"`},
		{`"match_type" : "lpm",
          "type"`, `"match_type" : "exact",
          "type"`, "pipelines[0].tables[0].key[0]: a lpm key in the exact table t"},
		{`"action_ids" : [0]`, `"action_ids" : [4]`, "pipelines[0].tables[0].action_ids[0]: unknown action id 4"},
		{`"action_data" : ["0x1"]`, `"action_data" : []`, "pipelines[0].tables[0].default_entry: action set takes 1 arguments, found 0"},
		{`"action_data" : ["0x2"]`, `"action_data" : ["2z"]`, `pipelines[0].tables[0].entries[0].action_entry.action_data[0]: "2z"`},
		{`"action_data" : ["0x2"]`, `"action_data" : ["-0x2"]`, "pipelines[0].tables[0].entries[0].action_entry.action_data[0]: -0x2 is negative: simple_switch does not support"},
		{`"action_data" : ["0x1"]`, `"action_data" : ["-0x1"]`, "pipelines[0].tables[0].default_entry.action_data[0]: -0x1 is negative"},
		{`"key" : "0x0100"`, `"key" : "-0x0100"`, "pipelines[0].tables[0].entries[0].match_key[0]: -0x0100 is negative"},
		{`"version" : [2, 23]`, `"version" : [1, 0]`, "__meta__.version: version is not 2.x"},
		{`"actions" : ["set"]`, `"actions" : [null]`, "pipelines[0].tables[0].actions[0]: null is not allowed here"},
	} {
		doc := strings.Replace(small, c.old, c.new, 1)
		if doc == small {
			t.Fatalf("%q is not in the document", c.old)
		}
		config, err := Load([]byte(doc))
		if err == nil || config != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %s", c.new, c.old, err, c.want)
		}
	}
}

func TestHexStrings(t *testing.T) {
	for _, c := range []struct {
		v     int64
		bytes int
		want  string
	}{{0, 0, "0x0"}, {0, 2, "0x0000"}, {255, 1, "0xff"}, {-1, 2, "-0x0001"}, {0x1234, 1, "0x1234"}} {
		if got := HexString(big.NewInt(c.v), c.bytes); got != c.want {
			t.Errorf("HexString(%d, %d) = %s, want %s", c.v, c.bytes, got, c.want)
		}
		if v, err := ParseHex(c.want); err != nil || v.Int64() != c.v {
			t.Errorf("ParseHex(%s) = %v, %v", c.want, v, err)
		}
	}
	for _, s := range []string{"", "-", "0x", "--1", "0x-1", "+1", "0x1_0", "g"} {
		if v, err := ParseHex(s); err == nil {
			t.Errorf("ParseHex(%q) = %v", s, v)
		}
	}
}

func FuzzLoad(f *testing.F) {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(small)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(write(f, pipe())))
	f.Add([]byte(`{"actions":[{"primitives":[{"op":"x","parameters":[7,{"type":"expression","value":{"op":"?"}}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Load(data)
		if (c == nil) != (err != nil) {
			t.Fatal("a configuration and an error, or neither")
		}
		if err != nil {
			return
		}
		out := write(t, c)
		again, err := Load([]byte(out))
		if err != nil {
			t.Fatalf("the written document does not load: %v", err)
		}
		if write(t, again) != out {
			t.Error("writing is not a fixpoint")
		}
	})
}
