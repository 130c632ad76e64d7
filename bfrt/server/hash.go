package server

// hash is a table of a hash: its algorithm, the order of its input, what it gives.
// Algorithms and orders are kept; the data plane goes on with the program's.
func (m *makers) hash(base *table, name string) (object, error) {
	rt := newRecords(base)
	if base.schema.Type == "DynHashCompute" {
		return rt, nil
	}
	rt.apply = func(r *request, before, after *record) error {
		if after != nil && (len(after.fields) > 0 || after.action != 0) {
			return failf(unimplemented, "the hash %s is the program's", name)
		}
		return nil
	}
	return rt, nil
}
