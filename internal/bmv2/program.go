package bmv2

// A Parser is a parse graph. InitState names its first state.
type Parser struct {
	Name        string        `bmv2:"name"`
	ID          int           `bmv2:"id"`
	InitState   string        `bmv2:"init_state"`
	ParseStates []*ParseState `bmv2:"parse_states"`
	// ReadsError is set where the control that follows reads parser_err:
	// otherwise Tofino drops what its ingress parser finds wrong.
	ReadsError bool `bmv2:"reads_error,omitempty"`
}

// A ParseState does its operations, then follows the first transition that
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
// "default"; documents before 2.23 leave it out and mean hexstr or default by
// the value. NextState "" accepts.
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

// A RuntimeParam is a parameter that a table entry supplies.
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
	// PingPong is set where a ghost thread's program looks at ping_pong: it keeps
	// two copies of its state itself. simple_switch does not know it.
	PingPong bool `bmv2:"ping_pong,omitempty"`
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
	// CounterActions and MeterActions are p4lb's own, and empty where it goes
	// without saying: the ids of the actions that count or meter, where some of
	// the table's do and others do not. BMv2 reads no such keys.
	CounterActions []int `bmv2:"counter_actions,omitempty"`
	MeterActions   []int `bmv2:"meter_actions,omitempty"`
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
	MatchType string   `bmv2:"match_type"`
	Name      string   `bmv2:"name,omitempty"`
	Target    FieldRef `bmv2:"target"`
	Mask      string   `bmv2:"mask,null"`
}

// A DefaultEntry is what a table does on a miss until told otherwise.
type DefaultEntry struct {
	ActionID         int      `bmv2:"action_id"`
	ActionConst      bool     `bmv2:"action_const"`
	ActionData       []string `bmv2:"action_data"`
	ActionEntryConst bool     `bmv2:"action_entry_const"`
}

// An Entry is a table entry of the program. To BMv2 a table that has any is
// immutable.
type Entry struct {
	SourceInfo  *SourceInfo  `bmv2:"source_info,omitempty"`
	MatchKey    []*MatchKey  `bmv2:"match_key"`
	ActionEntry *ActionEntry `bmv2:"action_entry"`
	// Priority is smallest first here, unlike at run time through P4Runtime.
	Priority int `bmv2:"priority"`
	// IsConst is p4lb's own: in a preinitialized table, whose other entries may
	// be changed, this one may not. BMv2 reads no such key.
	IsConst bool `bmv2:"is_const,omitempty"`
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

// A Selector says how a member of a group is chosen.
type Selector struct {
	Algo  string  `bmv2:"algo"`
	Input []*Expr `bmv2:"input"`
	// MaxGroupSize is how many members a group may have, of programs for Tofino;
	// 0: it is not said.
	MaxGroupSize int `bmv2:"max_group_size,omitempty"`
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

// An ActionCall runs a parameterless action in a control.
type ActionCall struct {
	Name       string      `bmv2:"name"`
	ID         int         `bmv2:"id"`
	SourceInfo *SourceInfo `bmv2:"source_info,omitempty"`
	ActionID   int         `bmv2:"action_id"`
	NextNode   string      `bmv2:"next_node,null"`
}
