package plain

// maxFolder is the maximum length of a folder's name.
const maxFolder = 100

// Folder returns the name of a folder for a named object: an experiment, a
// case, a row. It keeps letters, digits, -, + and dots that are not at the
// beginning, and replaces other characters by _. A name can therefore not refer
// to another folder. Different names may result in the same folder; callers
// with several names must reject that.
func Folder(name string) string {
	folder := []byte(name)
	for i, c := range folder {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '+', c == '.' && i > 0:
		default:
			folder[i] = '_'
		}
	}
	if len(folder) == 0 {
		return "_"
	}
	return string(folder[:min(len(folder), maxFolder)])
}
