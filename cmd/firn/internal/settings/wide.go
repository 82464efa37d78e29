package settings

import (
	"context"

	"github.com/google/uuid"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/objectid"
)

// NextWide makes an id of more than 64 bits, without a store: its bytes, and the text that it usually has. It may be called
// concurrently.
type NextWide func(ctx context.Context) (id []byte, text string, err error)

// UUIDs returns what makes UUIDs of a version, 4 or 7; for another the error is a
// *[firn.RangeError].
func UUIDs(version int) (NextWide, error) {
	made := map[int]func() (uuid.UUID, error){4: uuid.NewRandom, 7: uuid.NewV7}[version]
	if made == nil {
		return nil, firn.NewRangeError("UUID version", int64(version), 4, 7, "4 and 7 are made")
	}
	return func(context.Context) ([]byte, string, error) {
		id, err := made()
		return id[:], id.String(), err
	}, nil
}

// ObjectIDs returns what makes MongoDB's ids, with five random bytes of its own.
func ObjectIDs() (NextWide, error) {
	g, err := objectid.New(objectid.Config{})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]byte, string, error) {
		id, err := g.Next(ctx)
		return id[:], id.String(), err
	}, nil
}
