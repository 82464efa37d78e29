package firn_test

import (
	"context"
	"encoding"
	"time"

	"github.com/firn-id/firn"
)

// A Generator, an Encoding and a Layout have the verbs of docs/decisions/0011.
var _ interface {
	Next(ctx context.Context) (firn.ID, error)
	Take(ctx context.Context, n int) (firn.Run, error)
	Fill(ctx context.Context, dst []firn.ID) (int, error)
	Local() *firn.Local
	Check() error
	Extend(worker int64, through firn.Tick) error
	Replace(grant firn.Grant) error
	Halt(worker int64) (firn.Tick, bool)
	Stop() (worker int64, last firn.Tick)
} = (*firn.Generator)(nil)

var _ interface {
	Sleep(ctx context.Context, d time.Duration) error
} = firn.TimeSource(nil)

var _ interface {
	Fixed(id firn.ID) string
	AppendFixed(dst []byte, id firn.ID) []byte
	Compact(id firn.ID) string
	AppendCompact(dst []byte, id firn.ID) []byte
	Parse(text string) (firn.ID, error)
} = firn.Encoding(0)

var _ interface {
	Compose(parts firn.Parts) (firn.ID, error)
	Decompose(id firn.ID) (firn.Parts, error)
	Readable(id firn.ID) (string, error)
	ParseReadable(text string) (firn.ID, error)
} = firn.Layout{}

var (
	_ encoding.TextAppender                                  = firn.ID(0)
	_ interface{ AppendTo(dst []firn.ID) []firn.ID }         = firn.Run{}
	_ func(int64, firn.Config) (*firn.Generator, error)      = firn.New
	_ func(firn.LayoutConfig) (firn.Layout, error)           = firn.NewLayout
	_ func(text string) (firn.ID, error)                     = firn.ParseID
	_ func(text string) (firn.Layout, error)                 = firn.ParseLayout
	_ func(firn.Config, firn.Grant) (*firn.Generator, error) = firn.NewLeased
)
