package settings

import "github.com/firn-id/firn/sequence"

// sequences makes numbers that strictly increase.
var sequences = &Kind{
	Name: "sequence", Source: Counter, Numeric: true, settings: []any{Counted{}, Veiled{}, Prefixed{}},
	check: func(n Namespace, found Mistakes) { found.place(n.Of(), n.SequenceConfig().Check()) },
}

// SequenceConfig returns the configuration of a sequence without its store.
func (n Namespace) SequenceConfig() sequence.Config { return sequence.Config{Start: n.filled().From} }
