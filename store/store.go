// Package store defines what Firn needs of a coordination store: a linearizable map of registers.
// Leases, segments and sequences are written once, above it.
//
// Backends: memstore (this process), filestore (a folder of this machine), sqlstore (database/sql), and
// in modules of their own redisstore, etcdstore and zkstore. To write your own, implement [Store] and
// run the conformance suite, storetest.Run, against the real server.
//
// It is not for data of your own: values have at most 64 KiB, and a key is never deleted.
package store

import (
	"context"
	"fmt"
	"regexp"
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
	// re-creation or a restored copy. All handles return the same name, and an older copy restored with
	// a restart never has it. Empty: the store has no such name.
	Life string
}

// A Store is a linearizable map of registers: every call takes effect at one moment between its start
// and its end, the same for all clients. Calls may be made concurrently and return when ctx ends.
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

	// List returns the entries whose keys begin with prefix, sorted by key.
	List(ctx context.Context, prefix string) ([]Entry, error)

	// Close releases the store's resources. Later calls fail with [ErrUnavailable].
	Close() error
}

// A Clock is a store with its own clock, to which all its clients can compare theirs.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}

// An Embedded store lives on this host and keeps what it acknowledged, so a newly created pool in it
// need not wait for holders from an earlier life.
type Embedded interface {
	Embedded() bool
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

var names = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// CheckName returns a *[firn.SyntaxError] for a name that is not 1 to 64 letters, digits, dots, dashes
// and underscores; such names fit into keys, paths and settings files. What is named: a pool, a
// counter.
func CheckName(what, name string) error {
	if names.MatchString(name) {
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
