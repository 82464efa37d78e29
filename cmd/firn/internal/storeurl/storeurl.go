// Package storeurl opens the store that a URL names.
package storeurl

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/etcdstore"
	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
	"github.com/firn-id/firn/store/hosturl"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/zkstore"
)

// Supported lists the URLs that Open accepts, for messages and help.
const Supported = "memory:, file:FOLDER, sqlite:PATH, redis://, rediss://, mysql://, postgres://, etcd:// and zookeeper://"

// openers open the stores of other hosts.
var openers = map[string]func(ctx context.Context, url string) (store.Store, error){
	"redis":      openAs(redisstore.Open),
	"rediss":     openAs(redisstore.Open),
	"etcd":       openAs(etcdstore.Open),
	"zookeeper":  openAs(zkstore.Open),
	"mysql":      openMySQL,
	"postgres":   openPostgres,
	"postgresql": openPostgres,
}

// QuietRedis keeps the Redis client from writing to standard error, for the whole program, where it is used without a
// store; its errors are returned anyway.
var QuietRedis = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// openAs returns a nil interface for a failed open, not a nil pointer in an interface.
func openAs[S store.Store](open func(context.Context, string) (S, error)) func(context.Context, string) (store.Store, error) {
	return func(ctx context.Context, url string) (store.Store, error) {
		s, err := open(ctx, url)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// memory is a store for tests; firn doctor rates it bad.
type memory struct{ *memstore.Store }

// Traits implements [store.Store].
func (m memory) Traits() store.Traits {
	of := m.Store.Traits()
	of.Examine = examineMemory
	return of
}

func examineMemory(context.Context) ([]store.Finding, error) {
	return []store.Finding{{
		Subject: "persistence", Verdict: store.Bad,
		Says:   "memory: exists only in this process and ends with it: counters restart, workers are granted twice, and ids repeat",
		Advice: "use it only for tests; use at least file:FOLDER for anything else",
	}}, nil
}

// ErrURL means that a text cannot be the URL of a store, whatever servers exist; or that it has a setting which only its
// PostgreSQL can know, and does not.
var ErrURL = hosturl.ErrURL

// A urlError matches [ErrURL], but its text does not contain ErrURL's.
type urlError struct{ error }

func (urlError) Is(target error) bool { return target == ErrURL }
func (e urlError) Unwrap() error      { return e.error }

func urlErrorf(format string, args ...any) error { return urlError{fmt.Errorf(format, args...)} }

// Open opens the store of a URL. It creates no folder and no file; if one is missing, the error is
// [store.ErrNotFound]. Its errors, and those of the store, name the store and repeat no
// password in the URL. For a text that cannot be a store URL the error is [ErrURL].
func Open(ctx context.Context, text string) (store.Store, error) {
	scheme, rest, ok := strings.Cut(text, ":")
	open := openers[scheme]
	switch {
	case text == "":
		return nil, urlErrorf("the store's URL is empty: %s are supported, as in file:/var/lib/firn", Supported)
	case !ok:
		return nil, urlErrorf("store %q has no scheme: %s are supported, as in file:%[1]s", Redact(text), Supported)
	case scheme == "memory" && rest == "":
		return memory{memstore.New(nil)}, nil
	case scheme == "memory":
		return nil, urlErrorf("store %q: memory: takes nothing after the colon", Redact(text))
	case scheme == "file":
		return openFolder(rest, filestore.Open)
	case scheme == "sqlite":
		return openSQLite(ctx, rest, false)
	case open == nil && isHost(text):
		return nil, urlErrorf("store %q has no scheme: %s are supported, as in %s://%[1]s", Redact(text), Supported, cmp.Or(schemeOf[rest], "redis"))
	case open == nil:
		return nil, urlErrorf("store %q: unknown scheme: %s are supported", Redact(text), Supported)
	case !strings.HasPrefix(rest, "//"):
		return nil, urlErrorf("store %q: write %s://HOST", Redact(text), scheme)
	}
	s, err := open(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("store %q: %w", Redact(text), err)
	}
	return s, nil
}

// Diagnose returns what can be found out about the servers of a store that [Open] could not open; nothing, for most
// stores: the error says it all.
func Diagnose(ctx context.Context, text string) []store.Finding {
	scheme, _, _ := strings.Cut(text, ":")
	var found []store.Finding
	switch scheme { // the error of a question is the one that Open had
	case "etcd":
		found, _ = etcdstore.Diagnose(ctx, text)
	case "zookeeper":
		found, _ = zkstore.Diagnose(ctx, text)
	}
	return found
}

// schemeOf has the scheme for each store's usual port.
var schemeOf = map[string]string{"6379": "redis", "2379": "etcd", "2181": "zookeeper", "3306": "mysql", "5432": "postgres"}

// isHost reports whether a text is HOST:PORT.
func isHost(text string) bool {
	_, port, err := net.SplitHostPort(text)
	return err == nil && port != "" && strings.Trim(port, "0123456789") == ""
}

// Redact returns a store URL for people to read, without anything that may be a password.
func Redact(text string) string {
	if strings.HasPrefix(text, "sqlite:") || strings.HasPrefix(text, "file:") {
		return text // a path, which may contain any characters
	}
	return hosturl.Redact(text)
}
