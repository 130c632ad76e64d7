package source

// A Profile is an action profile or selector with its members and groups.
type Profile struct {
	Name    string
	Members []Invoke
	Groups  [][]int
}

func (p *Profile) choose(m *Machine, do Invoke) Invoke { return do }
