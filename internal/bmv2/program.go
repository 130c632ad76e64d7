package bmv2

import "strings"

// A Parser is a parse graph. InitState is its first state.
type Parser struct {
	Name        string        `bmv2:"name"`
	ID          int           `bmv2:"id"`
	InitState   string        `bmv2:"init_state"`
	ParseStates []*ParseState `bmv2:"parse_states"`
	// ReadsError is set if the following control reads parser_err. Otherwise
	// Tofino drops packets with an error in the ingress parser.
	ReadsError bool `bmv2:"reads_error,omitempty"`
}

// A ParseState executes its operations and follows the first transition that
// matches the key. An empty key with a default transition is a jump.
type ParseState struct {
	Name          string       `bmv2:"name"`
	ID            int          `bmv2:"id"`
	ParserOps     []*ParserOp  `bmv2:"parser_ops"`
	Transitions   []Transition `bmv2:"transitions"`
	TransitionKey []*Expr      `bmv2:"transition_key"`
}

// A ParserOp is one operation: extract, extract_VL, set, verify, shift,
// advance, or primitive. For primitive, Primitive holds the call and
// Parameters is empty.
type ParserOp struct {
	Parameters []*Expr
	Op         string
	Primitive  *Primitive
	SourceInfo *SourceInfo
}

// A Transition is one case of a select. Type is "hexstr", "parse_vset" or
// "default"; documents before 2.23 omit it, so the value decides between hexstr
// and default. NextState "" accepts.
type Transition struct {
	Type      string `bmv2:"type,omitempty"`
	Value     string `bmv2:"value,null"`
	Mask      string `bmv2:"mask,null"`
	NextState string `bmv2:"next_state,null"`
}

// An Action is a list of primitives; RuntimeData are its parameters.
type Action struct {
	Name        string         `bmv2:"name"`
	ID          int            `bmv2:"id"`
	RuntimeData []RuntimeParam `bmv2:"runtime_data"`
	Primitives  []*Primitive   `bmv2:"primitives"`
}

// A RuntimeParam is a parameter set by a table entry.
type RuntimeParam struct {
	Name     string `bmv2:"name"`
	Bitwidth int    `bmv2:"bitwidth"`
}

// A Primitive is one call in an action, a parser or a deparser.
type Primitive struct {
	Op         string      `bmv2:"op"`
	Parameters []*Expr     `bmv2:"parameters"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
}

// A Pipeline is a control: a graph of tables, conditionals and action calls.
type Pipeline struct {
	Name           string           `bmv2:"name"`
	ID             int              `bmv2:"id"`
	SourceInfo     *SourceInfo      `bmv2:"source_info,omitempty"`
	InitTable      string           `bmv2:"init_table,null"`
	Tables         []*Table         `bmv2:"tables"`
	ActionProfiles []*ActionProfile `bmv2:"action_profiles"`
	Conditionals   []*Conditional   `bmv2:"conditionals"`
	ActionCalls    []*ActionCall    `bmv2:"action_calls,omitempty"`
	// PingPong is set if the program of a ghost thread uses ping_pong and keeps
	// two copies of its state itself. simple_switch ignores it.
	PingPong bool `bmv2:"ping_pong,omitempty"`
}

// Match kinds of tables and of keys.
const (
	MatchExact    = "exact"
	MatchLPM      = "lpm"
	MatchTernary  = "ternary"
	MatchRange    = "range"
	MatchOptional = "optional" // written as ternary by p4c
	MatchValid    = "valid"
)

// Implementations of a table.
const (
	TableSimple         = "simple"
	TableIndirect       = "indirect"    // with an action profile
	TableIndirectSelect = "indirect_ws" // with an action selector
)

// Labels of NextTables that stand for a hit or a miss instead of an action.
const (
	NextHit  = "__HIT__"
	NextMiss = "__MISS__"
)

// A Table is a match-action table.
type Table struct {
	Name            string        `bmv2:"name"`
	ID              int           `bmv2:"id"`
	SourceInfo      *SourceInfo   `bmv2:"source_info,omitempty"`
	Key             []*TableKey   `bmv2:"key"`
	MatchType       string        `bmv2:"match_type"`
	Type            string        `bmv2:"type"`
	ActionProfile   string        `bmv2:"action_profile,omitempty"`
	MaxSize         int           `bmv2:"max_size"`
	WithCounters    bool          `bmv2:"with_counters"`
	SupportTimeout  bool          `bmv2:"support_timeout"`
	DirectMeters    string        `bmv2:"direct_meters,null"`
	ActionIDs       []int         `bmv2:"action_ids,omitempty"`
	Actions         []string      `bmv2:"actions"`
	BaseDefaultNext string        `bmv2:"base_default_next,null"`
	NextTables      NextTables    `bmv2:"next_tables"`
	DefaultEntry    *DefaultEntry `bmv2:"default_entry,omitempty"`
	Entries         []*Entry      `bmv2:"entries,omitempty"`
	// CounterActions and MeterActions are the ids of the actions that count or
	// meter, if others in the table do not; otherwise they are empty. They are
	// extensions of p4lb, which BMv2 ignores.
	CounterActions []int `bmv2:"counter_actions,omitempty"`
	MeterActions   []int `bmv2:"meter_actions,omitempty"`
}

// Hidden reports whether the compiler, p4lb's or p4c, made the table for statements between the
// program's tables. Names of a program's tables have a dot.
func (t *Table) Hidden() bool {
	return strings.HasPrefix(t.Name, "tbl_") && len(t.Key) == 0 && t.DefaultEntry != nil && t.DefaultEntry.ActionConst
}

// NextTables are the successors of a table after each action (or after a hit
// and a miss), in the document's order.
type NextTables []NextTable

// A NextTable is one edge from a table; Next "" ends the pipeline.
type NextTable struct {
	Label string // an action's name, NextHit or NextMiss
	Next  string
}

// A TableKey is one field of a table's key.
type TableKey struct {
	MatchType string   `bmv2:"match_type"`
	Name      string   `bmv2:"name,omitempty"`
	Target    FieldRef `bmv2:"target"`
	Mask      string   `bmv2:"mask,null"`
}

// A DefaultEntry is the initial action of a table on a miss.
type DefaultEntry struct {
	ActionID         int      `bmv2:"action_id"`
	ActionConst      bool     `bmv2:"action_const"`
	ActionData       []string `bmv2:"action_data"`
	ActionEntryConst bool     `bmv2:"action_entry_const"`
}

// An Entry is a table entry of the program. BMv2 does not allow changes to a
// table with such entries.
type Entry struct {
	SourceInfo  *SourceInfo  `bmv2:"source_info,omitempty"`
	MatchKey    []*MatchKey  `bmv2:"match_key"`
	ActionEntry *ActionEntry `bmv2:"action_entry"`
	// Priority: the smallest wins, unlike in P4Runtime.
	Priority int `bmv2:"priority"`
	// IsConst marks an immutable entry in a preinitialized table with mutable
	// entries. It is an extension of p4lb, which BMv2 ignores.
	IsConst bool `bmv2:"is_const,omitempty"`
}

// A MatchKey is one field of an entry: Key (exact), Key and Mask (ternary), Key
// and PrefixLength (lpm), Start and End (range). A valid match has the key
// "0x01" or "0x00", which is true or false in the document.
type MatchKey struct {
	MatchType    string
	Key          string
	Mask         string
	PrefixLength int
	Start        string
	End          string
}

// An ActionEntry is an action with its arguments.
type ActionEntry struct {
	ActionID   int      `bmv2:"action_id"`
	ActionData []string `bmv2:"action_data"`
}

// An ActionProfile is a set of action entries shared by tables.
type ActionProfile struct {
	Name       string      `bmv2:"name"`
	ID         int         `bmv2:"id"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
	MaxSize    int         `bmv2:"max_size"`
	Selector   *Selector   `bmv2:"selector,omitempty"`
}

// A Selector describes how a member of a group is chosen.
type Selector struct {
	Algo  string  `bmv2:"algo"`
	Input []*Expr `bmv2:"input"`
	// MaxGroupSize is the maximum number of members of a group (Tofino); 0:
	// unspecified.
	MaxGroupSize int `bmv2:"max_group_size,omitempty"`
	// Scramble makes the hash non-linear before it selects a member (Tofino).
	Scramble bool `bmv2:"scramble,omitempty"`
}

// A Conditional is a branch of a control.
type Conditional struct {
	Name       string      `bmv2:"name"`
	ID         int         `bmv2:"id"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
	Expression *Expr       `bmv2:"expression"`
	TrueNext   string      `bmv2:"true_next,null"`
	FalseNext  string      `bmv2:"false_next,null"`
}

// An ActionCall executes an action without parameters in a control.
type ActionCall struct {
	Name       string      `bmv2:"name"`
	ID         int         `bmv2:"id"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
	ActionID   int         `bmv2:"action_id"`
	NextNode   string      `bmv2:"next_node,null"`
}
