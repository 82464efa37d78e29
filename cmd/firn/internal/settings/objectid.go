package settings

import (
	"context"

	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/objectid"
)

// objectIDs makes ObjectIDs of MongoDB.
var objectIDs = &Kind{
	Name: "objectid", Source: Local, settings: []any{Prefixed{}},
	Bytes: len(objectid.ID{}), Text: func(id []byte) string { return objectid.ID(id).String() },
	Makes: func(Namespace) string { return "ObjectIDs of 24 hex digits" },
	Read:  func(Namespace) (func(string) (decode.Contents, error), error) { return decode.ObjectID, nil },
	Wide: func(Namespace) (NextWide, error) {
		g, err := objectid.New(objectid.Config{}) // with five random bytes of its own
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) ([]byte, string, error) {
			id, err := g.Next(ctx)
			return id[:], id.String(), err
		}, nil
	},
}
