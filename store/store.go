// Package store defines what Firn needs of a coordination store: a linearizable map of registers.
// Leases, segments and sequences are written once, above it.
//
// Backends: memstore (this process), filestore (a folder of this machine), sqlstore (database/sql), and
// in modules of their own redisstore, etcdstore and zkstore. To write your own, implement [Store] and
// run the conformance suite, storetest.Run, against the real server.
//
// It is not a database: values have at most 64 KiB, and a key is never deleted.
package store

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/firn-id/firn"
)

// A Revision identifies one write of one key for ever: a backend never uses it again for that key, not
// even after the key was deleted, the store wiped or an older copy restored. An engine without such a
// number draws it at random. 0 stands for a key that does not exist.
type Revision int64

// An Entry is a key with its value and the revision that wrote it.
type Entry struct {
	Key      string
	Value    []byte
	Revision Revision
	// Life names the life of the store that confirmed a write; only CompareAndSwap sets it. A store
	// begins a new life when it may have forgotten confirmed writes: after a restart, a failover, a
	// re-creation or a restored copy. Nothing else begins one: each new life makes newcomers to a pool
	// wait. All handles return the same name, and an older copy restored with a restart never has it.
	// Empty: the store cannot detect all of that. Then each newcomer has to find out by what it reads.
	Life string
}

// A Store is a map of linearizable registers: every Get and CompareAndSwap takes effect at one moment
// between its start and its end, the same for all clients. Calls may be made concurrently.
//
// Keys: handles that were opened at the same place (the prefix or path in a URL, a table, a folder)
// share all keys; handles at other places see none of them. The place is not part of any key.
//
// Bytes: the caller owns the value it gives and those it gets. It may change them once the call has
// returned, even if the call was abandoned and its request is still in flight.
//
// Contexts: a call whose ctx has ended makes no request. A call returns when ctx ends, whatever its
// client does; the error matches ctx.Err() and context.Cause(ctx), see [ContextError]. Without an
// earlier deadline it ends after some seconds with [ErrUnavailable].
//
// Errors: each is a *[CallError] with Store, Op and Key, whose Err says what is wrong and matches one of the errors below.
// Package storetest checks a Store of yours.
type Store interface {
	// Get returns the entry of key, or an error that is [ErrNotFound].
	Get(ctx context.Context, key string) (Entry, error)

	// CompareAndSwap writes value if the revision of key is still old; with old 0, if key does not
	// exist. It returns the entry as written.
	//
	// There are three outcomes. Nil: applied and confirmed, so the write survives every failure the
	// store is configured to survive; for example, a replica that may be promoted has it. An error that
	// is [ErrConflict] or [ErrRefused]: certainly not applied, see [Unapplied]. Any other error,
	// including those of ctx: unknown. The write may have been applied, or may still be; and an applied
	// write may not survive. Only another confirmed write settles that. A read does not: its server may
	// be about to lose the value it returned.
	//
	// Do not call it directly: store/register upholds this for all of Firn.
	CompareAndSwap(ctx context.Context, key string, old Revision, value []byte) (Entry, error)

	// List returns the entries whose keys begin with prefix, sorted by key. It is a Get of every such key,
	// each at a moment of its own during the call: two entries may never have existed together. So do
	// not conclude from one entry what another one is; a CompareAndSwap over its revision finds out.
	List(ctx context.Context, prefix string) ([]Entry, error)

	// Traits returns what holds of this store and not of every one. It makes no call, and its answer never
	// changes. It belongs to Store, as no optional interface would: a wrapper that embeds a Store would hide
	// that interface, and a lease over the wrapper would compare its clock with nothing.
	Traits() Traits

	// Close releases the store's resources. Calls in flight end soon: with their answer, or as when the
	// connection is lost, with [ErrUnavailable]. Later calls, except Close, fail with [ErrUnavailable].
	Close() error
}

// Traits are what holds of a store and not of every one. The zero value is a server without a clock that
// cannot be examined.
type Traits struct {
	// Clock is the store's own clock, to which all its clients can compare theirs. Nil: it has none.
	Clock Clock

	// Embedded says that processes of this host only use the store, and that it ends with the host or keeps
	// what it acknowledged there. A pool newly created in it then has no holders from an earlier life, so
	// its first newcomers do not wait. It is for files and memory, never for a server: that may have been
	// wiped under its clients. It does not replace Life: a file may be replaced by an older copy.
	Embedded bool

	// Examine reports whether the server is configured to keep everything it acknowledged. It only reads;
	// its error means that the server could not be asked at all. Nil: there is nothing to examine.
	Examine func(ctx context.Context) ([]Finding, error)
}

// A Clock is the clock of a store.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}

// Bounds of keys and values, the same for all backends.
const (
	MaxKeyBytes   = 512
	MaxValueBytes = 64 << 10
)

// CheckKey returns an [ErrRefused] for a key that is empty, longer than [MaxKeyBytes] or not printable
// UTF-8. Every backend calls it.
func CheckKey(key string) error {
	switch {
	case key == "":
		return refused(key, "the key is empty")
	case len(key) > MaxKeyBytes:
		return refused(key[:99]+"…", "a key of %d bytes, at most %d are allowed", len(key), MaxKeyBytes)
	case !utf8.ValidString(key):
		return refused(key, "the key is not UTF-8")
	}
	for _, r := range key {
		if !unicode.IsPrint(r) {
			return refused(key, "the key has the unprintable character %U", r)
		}
	}
	return nil
}

// What CheckName allows.
const (
	maxNameBytes = 64
	inNames      = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
)

// CheckName returns a *[firn.SyntaxError] for a name that is not 1 to 64 letters, digits, dots, dashes
// and underscores; such names fit into keys, paths and settings files. What is named: a pool, a
// counter.
func CheckName(what, name string) error {
	if name != "" && len(name) <= maxNameBytes && strings.Trim(name, inNames) == "" {
		return nil
	}
	return firn.NewSyntaxError(what+" name", name, "1 to 64 letters, digits, dots, dashes and underscores are allowed")
}

// CheckValue returns an [ErrRefused] for a value above [MaxValueBytes]. Every backend calls it.
func CheckValue(key string, value []byte) error {
	if len(value) > MaxValueBytes {
		return refused(key, "a value of %d bytes, at most %d are allowed", len(value), MaxValueBytes)
	}
	return nil
}

func refused(key, format string, args ...any) error {
	return &CallError{Store: "store", Op: "check", Key: key, Err: fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)}
}
