package settings

import (
	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/sequence"
)

// sequences makes numbers that strictly increase.
var sequences = &Kind{
	Name: "sequence", Source: Counter, Numeric: true, settings: []any{Counted{}, Veiled{}, Prefixed{}},
	Makes: func(Namespace) string { return countedNumbers },
	Number: func(n Namespace) func(firn.ID) (decode.Contents, error) {
		return func(id firn.ID) (decode.Contents, error) { return counted(n, id) }
	},
	check: func(n Namespace, found Mistakes) { found.place(n.Of(), n.SequenceConfig().Check()) },
}

// SequenceConfig returns the configuration of a sequence without its store.
func (n Namespace) SequenceConfig() sequence.Config {
	return sequence.Config{Start: n.filled().From, MustExist: n.MustExist, Max: n.Veil.most()}
}
