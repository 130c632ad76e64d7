package main

import "github.com/p4lb/p4lb/tools/differential/internal/source"

// features lists the features that programs for an architecture must cover, each in
// at least 1 % of the programs.
func features(arch string) []string {
	list := []string{
		"action data", "action directions", "action profile", "action selector", "control in control", "meter", "parser in parser",
		"recirculate", "varbit", "advance", "arithmetic", "bool cast", "cast", "compound assignment", "computed index",
		"concatenation", "conditional", "const entries", "direct action", "enum", "enum cast", "exit",
		"function", "function statement", "header assignment", "header stack", "header union", "hit", "int constant", "isValid",
		"key exact", "key lpm", "key mask", "key range", "key ternary", "lastIndex", "lookahead", "loop", "parser loop",
		"pop_front", "priorities", "push_front", "return", "run-time entries", "saturation", "select", "select mask",
		"select range", "select without match", "setInvalid", "setValid", "shift", "short circuit", "slice", "slice as lvalue",
		"checksum", "counter", "digest", "drop", "hash", "multicast", "resubmit", "struct", "struct equality", "switch", "switch action_run", "table", "tuple", "unary", "value set",
	}
	if arch == source.V1model {
		return append(list, "clone", "direct counter", "key optional", "register", "verify", "verify_checksum")
	}
	return append(list, "RegisterAction", "mirror")
}
