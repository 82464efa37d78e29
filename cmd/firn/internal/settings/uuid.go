package settings

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
)

// uuids makes UUIDs.
var uuids = &Kind{
	Name: "uuid", Source: Local, Help: "version 7", settings: []any{UUID{}, Prefixed{}}, Wide: nextUUID,
	Bytes: len(uuid.UUID{}), Text: func(id []byte) string { return uuid.UUID(id).String() },
	Makes: func(n Namespace) string { return fmt.Sprintf("UUIDs of version %d", n.Version) },
	Read: func(n Namespace) (func(string) (decode.Contents, error), error) {
		return func(text string) (decode.Contents, error) { return readUUID(text, n.Version) }, nil
	},
	Variants: map[string]func(*Namespace){
		"uuid4": func(n *Namespace) { n.Version = 4 }, "uuid7": func(n *Namespace) { n.Version = 7 },
	},
	check: func(n Namespace, found Mistakes) { _, found["version"] = nextUUID(n) },
}

// UUID has the settings of UUIDs.
type UUID struct {
	Version int `yaml:"version" default:"7" allowed:"4, 7" help:"7 begins with the time, 4 is random"`
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

// readUUID decodes a UUID of a version; 0 for any.
func readUUID(text string, version int) (decode.Contents, error) {
	c, err := decode.UUID(text)
	if err != nil || version == 0 {
		return c, err
	}
	id, err := uuid.Parse(text)
	if got := int(id.Version()); err == nil && (got != version || id.Variant() != uuid.RFC4122) {
		err = firn.NewSyntaxError(fmt.Sprintf("UUID of version %d", version), text, fmt.Sprintf("it has version %d and variant %s", got, id.Variant()))
	}
	return c, err
}
