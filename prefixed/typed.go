package prefixed

import (
	"database/sql/driver"
	"log/slog"

	"github.com/firn-id/firn"
)

// A Kind has the prefix of its ids, which must be constant. Define an empty struct for each
// kind:
//
//	type order struct{}
//
//	func (order) Prefix() string { return "ord" }
//
//	type OrderID = prefixed.ID[order]
type Kind interface{ Prefix() string }

// An ID is a [firn.ID] that is text with the prefix of its kind in JSON, as a map key, in
// fmt with %v and %s, and in slog. In database/sql it is the number, a BIGINT. Ids of
// different kinds have different types, so the compiler finds a mix-up. Convert it from
// and to a firn.ID.
//
// A prefix that [New] refuses makes the Marshal and Unmarshal methods fail with
// its error.
type ID[K Kind] firn.ID

// prefix returns the prefix of the kind.
func (ID[K]) prefix() (Prefix, error) {
	var kind K
	return New(kind.Prefix())
}

// Parse reads the id of a kind as [Prefix.ParseID] does, with the same errors.
func Parse[K Kind](text string) (ID[K], error) {
	p, err := ID[K](0).prefix()
	if err != nil {
		return 0, err
	}
	id, err := p.ParseID(text)
	return ID[K](id), err
}

// String returns the text of [Prefix.ID]. If [New] refuses the prefix, the text begins with
// an underscore and no Prefix reads it.
func (id ID[K]) String() string {
	p, _ := id.prefix()
	return p.ID(firn.ID(id))
}

// MarshalText implements [encoding.TextMarshaler], and so JSON: what String
// returns.
func (id ID[K]) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// AppendText implements [encoding.TextAppender]: it appends what String returns
// to b, and does not allocate when b has room.
func (id ID[K]) AppendText(b []byte) ([]byte, error) {
	p, err := id.prefix()
	if err != nil {
		return b, err
	}
	return p.appendID(b, firn.ID(id)), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler], and so JSON. It reads what [Parse]
// does, with the same errors. On an error id is unchanged.
func (id *ID[K]) UnmarshalText(text []byte) error {
	parsed, err := Parse[K](string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// LogValue implements [slog.LogValuer]: what String returns.
func (id ID[K]) LogValue() slog.Value { return slog.StringValue(id.String()) }

// Value implements [driver.Valuer] as [firn.ID.Value] does.
func (id ID[K]) Value() (driver.Value, error) { return firn.ID(id).Value() }

// Scan implements [database/sql.Scanner] as [firn.ID.Scan] does.
func (id *ID[K]) Scan(src any) error { return (*firn.ID)(id).Scan(src) }
