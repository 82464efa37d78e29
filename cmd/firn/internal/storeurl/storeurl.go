// Package storeurl opens the store that a URL names.
package storeurl

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/etcdstore"
	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/hosturl"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/zkstore"
)

// A kind is what the URLs of one scheme name.
type kind struct {
	scheme string
	form   string // what follows the scheme and its colon, for messages; two slashes for servers
	port   string // the usual one of its servers

	open     func(ctx context.Context, url string) (store.Store, error)              // for other than servers: what follows the colon
	file     func(ctx context.Context, path string, makes bool) (store.Store, error) // instead of open, for what must be created
	diagnose func(ctx context.Context, url string) ([]store.Finding, error)          // nil: the error of open says it all
}

// kinds are all stores, in the order in which messages and completions have them. What a new store needs is here.
var kinds = []kind{
	{scheme: "memory", open: openMemory},
	{scheme: "file", form: "FOLDER", file: folder},
	{scheme: "sqlite", form: "PATH", file: sqliteFile},
	{scheme: "redis", form: "//", port: "6379", open: openAs(redisstore.Open)},
	{scheme: "rediss", form: "//", open: openAs(redisstore.Open)},
	{scheme: "mysql", form: "//", port: "3306", open: openMySQL},
	{scheme: "postgres", form: "//", port: "5432", open: openPostgres},
	{scheme: "postgresql", form: "//", open: openPostgres},
	{scheme: "etcd", form: "//", port: "2379", open: openAs(etcdstore.Open), diagnose: etcdstore.Diagnose},
	{scheme: "zookeeper", form: "//", port: "2181", open: openAs(zkstore.Open), diagnose: zkstore.Diagnose},
}

// find returns the kind of a URL, and what follows its scheme.
func find(text string) (k kind, rest string, ok bool) {
	scheme, rest, _ := strings.Cut(text, ":")
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.scheme == scheme })
	if i < 0 {
		return kind{}, rest, false
	}
	return kinds[i], rest, true
}

// Beginnings returns how the URLs of all stores begin.
func Beginnings() (all []string) {
	for _, k := range kinds {
		all = append(all, k.scheme+":"+k.form[:strings.LastIndexByte(k.form, '/')+1])
	}
	return all
}

// Creatable reports whether the URL names a store that [Create] creates, and that must exist for [Open].
func Creatable(text string) bool {
	k, _, _ := find(text)
	return k.file != nil
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

func openMemory(_ context.Context, rest string) (store.Store, error) {
	if rest != "" {
		return nil, urlErrorf("store %q: memory: takes nothing after the colon", "memory:"+rest)
	}
	return examined{memstore.New(nil), examineMemory}, nil
}

// examined is a store on this machine that is examined here: for the library there is nothing to ask it.
type examined struct {
	store.Store
	examine func(context.Context) ([]store.Finding, error)
}

// Traits implements [store.Store].
func (e examined) Traits() store.Traits {
	of := e.Store.Traits()
	of.Examine = e.examine
	return of
}

// examineMemory: it is a store for tests.
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
	k, rest, known := find(text)
	switch {
	case text == "":
		return nil, urlErrorf("the store's URL is empty: %s are supported, as in file:/var/lib/firn", supported())
	case strings.Contains(text, "${"):
		return nil, urlErrorf("store %q: ${NAME} is not replaced by a variable: write the value, or leave the store out of the file and set FIRN_STORE; in a password, write %%24 for $", Redact(text))
	case !strings.Contains(text, ":"):
		return nil, urlErrorf("store %q has no scheme: %s are supported, as in file:%[1]s", Redact(text), supported())
	case !known && fromDSN(text) != "":
		return nil, urlErrorf("store %q: did you mean %s?", Redact(text), fromDSN(text))
	case !known && isHost(text):
		return nil, urlErrorf("store %q has no scheme: %s are supported, as in %s://%[1]s", Redact(text), supported(), schemeOf(rest))
	case !known:
		begins := text[:len(text)-len(strings.TrimPrefix(rest, "//"))] // the scheme, its colon and the slashes
		return nil, urlErrorf("store %q: unknown scheme: %s are supported%s", Redact(text), supported(), failure.DidYouMean(begins, Beginnings()))
	case k.file != nil:
		return k.file(ctx, rest, false)
	case k.form != "//":
		return k.open(ctx, rest)
	case !strings.HasPrefix(rest, "//"):
		return nil, urlErrorf("store %q: write %s://HOST", Redact(text), k.scheme)
	}
	s, err := k.open(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("store %q: %w", Redact(text), err)
	}
	return s, nil
}

// Create is [Open], but first creates a store in a folder or in a SQLite file. The other stores are on
// servers, and need no creation.
func Create(ctx context.Context, text string) (store.Store, error) {
	if k, rest, _ := find(text); k.file != nil && !strings.Contains(text, "${") {
		return k.file(ctx, rest, true)
	}
	return Open(ctx, text)
}

// Diagnose returns what can be found out about the servers of a store that [Open] could not open; nothing, for most
// stores: the error says it all.
func Diagnose(ctx context.Context, text string) []store.Finding {
	k, _, _ := find(text)
	if k.diagnose == nil {
		return nil
	}
	found, _ := k.diagnose(ctx, text) // the error of a question is the one that Open had
	return found
}

// supported lists the URLs that Open accepts, for messages.
func supported() string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.scheme+":"+k.form)
	}
	return failure.List(all, "and")
}

// schemeOf returns the scheme for a store's usual port; of any other port, that of Redis.
func schemeOf(port string) string {
	for _, k := range kinds {
		if k.port != "" && k.port == port {
			return k.scheme
		}
	}
	return "redis"
}

// isHost reports whether a text is HOST:PORT.
func isHost(text string) bool {
	_, port, err := net.SplitHostPort(text)
	return err == nil && port != "" && strings.Trim(port, "0123456789") == ""
}

// Redact returns a store URL for people to read, without anything that may be a password.
func Redact(text string) string {
	if Creatable(text) {
		return text // a path, which may contain any characters
	}
	return hosturl.Redact(text)
}
