package plain

// maxFolder is the longest name of a folder.
const maxFolder = 100

// Folder is what a folder is called that keeps what belongs to name: an
// experiment, a case, a row. Letters, digits, - and + stay, and dots that are
// not in front; all else becomes _. So no name leads out of the folder that it
// is put into. Names that differ may give one folder: who takes several refuses
// the second.
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
