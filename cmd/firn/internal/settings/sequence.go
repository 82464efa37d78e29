package settings

import "github.com/firn-id/firn"

// sequences makes numbers that strictly increase.
var sequences = &Kind{
	Name: "sequence", Source: Counter, Numeric: true, settings: []any{Counted{}, Veiled{}, Prefixed{}},
	check: func(n Namespace, found Mistakes) {
		if n.From < 0 {
			found["from"] = firn.NewRangeError("from", int64(n.From), 1, int64(firn.MaxID), "")
		}
	},
}
