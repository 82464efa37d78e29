package sim

// rival is the usual design.
type rival struct{ m *machine }

func (r *rival) run(*life)   {}
func (r *rival) leave(*life) {}
