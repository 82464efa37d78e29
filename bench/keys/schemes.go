package main

import (
	"context"
	"encoding/hex"
	"strconv"

	"github.com/google/uuid"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/objectid"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/veil"
)

// A form says how a key is stored.
type form uint8

const (
	automatic form = iota // the database makes it
	number                // BIGINT
	bytes12
	bytes16
	text // of 36 characters
)

// A scheme is a kind of ids.
type scheme struct {
	name string
	form form
	// open returns a source for each writer. A source returns a key in decimal or hexadecimal digits,
	// or as text.
	open func(writers int) ([]source, error)
}

type source func(context.Context) (string, error)

var schemes = []scheme{
	{"auto-increment", automatic, func(n int) ([]source, error) {
		return each(n, func(int) (source, error) { return func(context.Context) (string, error) { return "", nil }, nil })
	}},
	{"sequence", number, func(n int) ([]source, error) {
		s, err := sequence.New(sequence.Config{Store: memstore.New(nil)})
		if err != nil {
			return nil, err
		}
		names, err := s.Namespace("rows")
		return each(n, func(int) (source, error) { return numbers(names.Next), err })
	}},
	{"segment", number, func(n int) ([]source, error) {
		store := memstore.New(nil)
		return each(n, func(int) (source, error) {
			s, err := segment.New(segment.Config{Store: store})
			if err != nil {
				return nil, err
			}
			name, err := s.Namespace("rows")
			return numbers(name.Next), err
		})
	}},
	{"snowflake", number, func(n int) ([]source, error) {
		return each(n, func(worker int) (source, error) {
			g, err := firn.New(int64(worker), firn.Config{})
			return numbers(g.Next), err
		})
	}},
	{"veiled snowflake", number, func(n int) ([]source, error) {
		key, err := veil.NewKey(1, make([]byte, 16))
		if err != nil {
			return nil, err
		}
		v, err := veil.New(veil.Config{Keys: []veil.Key{key}})
		if err != nil {
			return nil, err
		}
		return each(n, func(worker int) (source, error) {
			g, err := firn.New(int64(worker), firn.Config{})
			return numbers(func(ctx context.Context) (firn.ID, error) {
				id, err := g.Next(ctx)
				if err != nil {
					return 0, err
				}
				return v.Veil(id)
			}), err
		})
	}},
	{"ObjectID", bytes12, func(n int) ([]source, error) {
		return each(n, func(int) (source, error) {
			g, err := objectid.New(objectid.Config{})
			return func(ctx context.Context) (string, error) { id, err := g.Next(ctx); return id.String(), err }, err
		})
	}},
	{"UUID v7", bytes16, uuids(uuid.NewV7, inHex)},
	{"UUID v4", bytes16, uuids(uuid.NewRandom, inHex)},
	{"UUID v4 as text", text, uuids(uuid.NewRandom, uuid.UUID.String)},
}

// each returns a source for each writer.
func each(writers int, open func(writer int) (source, error)) (all []source, err error) {
	for w := range writers {
		s, err := open(w)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func numbers(next func(context.Context) (firn.ID, error)) source {
	return func(ctx context.Context) (string, error) {
		id, err := next(ctx)
		return strconv.FormatInt(int64(id), 10), err
	}
}

func inHex(id uuid.UUID) string { return hex.EncodeToString(id[:]) }

func uuids(make func() (uuid.UUID, error), write func(uuid.UUID) string) func(int) ([]source, error) {
	return func(n int) ([]source, error) {
		return each(n, func(int) (source, error) {
			return func(context.Context) (string, error) {
				id, err := make()
				return write(id), err
			}, nil
		})
	}
}
