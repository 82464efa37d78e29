package settings

import (
	"context"

	"github.com/google/uuid"

	"github.com/firn-id/firn"
)

// uuids makes UUIDs.
var uuids = &Kind{
	Name: "uuid", Source: Local, settings: []any{UUID{}, Prefixed{}}, Wide: nextUUID,
	check: func(n Namespace, found Mistakes) { _, found["version"] = nextUUID(n) },
}

// UUID has the settings of UUIDs.
type UUID struct {
	Version int `yaml:"version" default:"7" allowed:"7 and 4" help:"7 begins with the time, 4 is random"`
}

func nextUUID(n Namespace) (NextWide, error) {
	made := map[int]func() (uuid.UUID, error){4: uuid.NewRandom, 7: uuid.NewV7, 0: uuid.NewV7}[n.Version]
	if made == nil {
		return nil, firn.NewRangeError("UUID version", int64(n.Version), 4, 7, "4 and 7 are made")
	}
	return func(context.Context) ([]byte, string, error) {
		id, err := made()
		return id[:], id.String(), err
	}, nil
}
