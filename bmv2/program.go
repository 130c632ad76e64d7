package bmv2

// A Parser is a parse graph. InitState names its first state.
type Parser struct {
	Name        string        `json:"name"`
	ID          int           `json:"id"`
	InitState   string        `json:"init_state"`
	ParseStates []*ParseState `json:"parse_states"`
}

// A ParseState does its operations, then follows the first transition that
// matches the key. An empty key with a default transition is a jump.
type ParseState struct {
	Name          string       `json:"name"`
	ID            int          `json:"id"`
	ParserOps     []*ParserOp  `json:"parser_ops"`
	Transitions   []Transition `json:"transitions"`
	TransitionKey []*Expr      `json:"transition_key"`
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
// "default"; documents before 2.23 leave it out and mean hexstr or default by
// the value. NextState "" accepts.
type Transition struct {
	Type      string `json:"type,omitempty"`
	Value     string `json:"value,null"`
	Mask      string `json:"mask,null"`
	NextState string `json:"next_state,null"`
}

// An Action is a list of primitives; RuntimeData are its parameters.
type Action struct {
	Name        string         `json:"name"`
	ID          int            `json:"id"`
	RuntimeData []RuntimeParam `json:"runtime_data"`
	Primitives  []*Primitive   `json:"primitives"`
}

// A RuntimeParam is a parameter that a table entry supplies.
type RuntimeParam struct {
	Name     string `json:"name"`
	Bitwidth int    `json:"bitwidth"`
}

// A Primitive is one call in an action, a parser or a deparser.
type Primitive struct {
	Op         string      `json:"op"`
	Parameters []*Expr     `json:"parameters"`
	SourceInfo *SourceInfo `json:"source_info,omitempty"`
}

// A Pipeline is a control: a graph of tables, conditionals and action calls.
type Pipeline struct {
	Name           string           `json:"name"`
	ID             int              `json:"id"`
	SourceInfo     *SourceInfo      `json:"source_info,omitempty"`
	InitTable      string           `json:"init_table,null"`
	Tables         []*Table         `json:"tables"`
	ActionProfiles []*ActionProfile `json:"action_profiles"`
	Conditionals   []*Conditional   `json:"conditionals"`
	ActionCalls    []*ActionCall    `json:"action_calls,omitempty"`
}

// Kinds of match, for tables and for keys.
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
	TableIndirect       = "indirect"    // through an action profile
	TableIndirectSelect = "indirect_ws" // through an action selector
)

// Labels of NextTables that stand for the lookup's outcome rather than for an
// action.
const (
	NextHit  = "__HIT__"
	NextMiss = "__MISS__"
)

// A Table is a match-action table.
type Table struct {
	Name            string        `json:"name"`
	ID              int           `json:"id"`
	SourceInfo      *SourceInfo   `json:"source_info,omitempty"`
	Key             []*TableKey   `json:"key"`
	MatchType       string        `json:"match_type"`
	Type            string        `json:"type"`
	ActionProfile   string        `json:"action_profile,omitempty"`
	MaxSize         int           `json:"max_size"`
	WithCounters    bool          `json:"with_counters"`
	SupportTimeout  bool          `json:"support_timeout"`
	DirectMeters    string        `json:"direct_meters,null"`
	ActionIDs       []int         `json:"action_ids,omitempty"`
	Actions         []string      `json:"actions"`
	BaseDefaultNext string        `json:"base_default_next,null"`
	NextTables      NextTables    `json:"next_tables"`
	DefaultEntry    *DefaultEntry `json:"default_entry,omitempty"`
	Entries         []*Entry      `json:"entries,omitempty"`
}

// NextTables says where the control continues after each action (or after a
// hit and a miss), in the document's order.
type NextTables []NextTable

// A NextTable is one arrow out of a table; Next "" ends the pipeline.
type NextTable struct {
	Label string // an action's name, NextHit or NextMiss
	Next  string
}

// A TableKey is one field of a table's key.
type TableKey struct {
	MatchType string   `json:"match_type"`
	Name      string   `json:"name,omitempty"`
	Target    FieldRef `json:"target"`
	Mask      string   `json:"mask,null"`
}

// A DefaultEntry is what a table does on a miss until told otherwise.
type DefaultEntry struct {
	ActionID         int      `json:"action_id"`
	ActionConst      bool     `json:"action_const"`
	ActionData       []string `json:"action_data"`
	ActionEntryConst bool     `json:"action_entry_const"`
}

// An Entry is a table entry of the program. A table that has any is immutable.
type Entry struct {
	SourceInfo  *SourceInfo  `json:"source_info,omitempty"`
	MatchKey    []*MatchKey  `json:"match_key"`
	ActionEntry *ActionEntry `json:"action_entry"`
	// Priority is smallest first here, unlike at run time through P4Runtime.
	Priority int `json:"priority"`
}

// A MatchKey is one field of an entry: Key (exact), Key and Mask (ternary),
// Key and PrefixLength (lpm), Start and End (range). A valid match has the
// key "0x01" or "0x00", which the document writes as true or false.
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
	ActionID   int      `json:"action_id"`
	ActionData []string `json:"action_data"`
}

// An ActionProfile is a set of action entries shared by tables.
type ActionProfile struct {
	Name       string      `json:"name"`
	ID         int         `json:"id"`
	SourceInfo *SourceInfo `json:"source_info,omitempty"`
	MaxSize    int         `json:"max_size"`
	Selector   *Selector   `json:"selector,omitempty"`
}

// A Selector says how a member of a group is chosen.
type Selector struct {
	Algo  string  `json:"algo"`
	Input []*Expr `json:"input"`
}

// A Conditional is a branch of a control.
type Conditional struct {
	Name       string      `json:"name"`
	ID         int         `json:"id"`
	SourceInfo *SourceInfo `json:"source_info,omitempty"`
	Expression *Expr       `json:"expression"`
	TrueNext   string      `json:"true_next,null"`
	FalseNext  string      `json:"false_next,null"`
}

// An ActionCall runs a parameterless action in a control.
type ActionCall struct {
	Name       string      `json:"name"`
	ID         int         `json:"id"`
	SourceInfo *SourceInfo `json:"source_info,omitempty"`
	ActionID   int         `json:"action_id"`
	NextNode   string      `json:"next_node,null"`
}
