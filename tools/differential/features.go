package main

import "github.com/p4lb/p4lb/tools/differential/internal/source"

// features lists what the programs for an architecture contain, each in at least
// 1 % of them.
func features(arch string) []string {
	list := []string{
		"action data", "action directions", "advance", "arithmetic", "bool cast", "cast", "compound assignment", "computed index",
		"concatenation", "conditional", "const entries", "direct action", "entry outside of a mask", "enum", "enum cast", "exit",
		"function", "function statement", "header assignment", "header stack", "header union", "hit", "int constant", "isValid",
		"key exact", "key lpm", "key range", "key ternary", "lastIndex", "lookahead", "loop", "masked key", "parser loop",
		"pop_front", "priorities", "push_front", "return", "run-time entries", "saturation", "select", "select mask",
		"select range", "select without match", "setInvalid", "setValid", "shift", "short circuit", "slice", "slice as lvalue",
		"struct", "struct equality", "switch", "switch action_run", "table", "tuple", "unary", "value set",
	}
	if arch == source.V1model {
		return append(list, "key optional", "varbit", "verify")
	}
	return list
}
