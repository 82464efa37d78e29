package settings

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
)

// uuids makes UUIDs.
var uuids = &Kind{
	Name: "uuid", Source: Local, Help: "version 7", settings: []any{UUID{}, Prefixed{}}, Wide: nextUUID,
	Read: func(Namespace) (func(string) (decode.Contents, error), error) { return decode.UUID, nil },
	Variants: map[string]func(*Namespace){
		"uuid4": func(n *Namespace) { n.Version = 4 }, "uuid7": func(n *Namespace) { n.Version = 7 },
	},
	check: func(n Namespace, found Mistakes) { _, found["version"] = nextUUID(n) },
}

// UUID has the settings of UUIDs.
type UUID struct {
	Version int `yaml:"version" default:"7" allowed:"7 and 4" help:"7 begins with the time, 4 is random"`
}

func nextUUID(n Namespace) (NextWide, error) {
	made := map[int]func() (uuid.UUID, error){4: uuid.NewRandom, 7: uuid.NewV7}[n.filled().Version]
	if made == nil {
		return nil, firn.NewSyntaxError("UUID version", strconv.Itoa(n.Version), "4 and 7 are allowed")
	}
	return func(context.Context) ([]byte, string, error) {
		id, err := made()
		return id[:], id.String(), err
	}, nil
}
