// Package storeurl opens the store that a URL names.
package storeurl

import (
	"context"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// Supported says which URLs Open takes, for messages and help.
const Supported = "memory: and sqlite:PATH"

// Open opens the store of a URL. Its errors, and those of the store, name the
// store and repeat no password in the URL.
func Open(ctx context.Context, text string) (store.Store, error) {
	scheme, rest, ok := strings.Cut(text, ":")
	switch {
	case !ok:
		return nil, fmt.Errorf("store %q has no scheme: %s are supported, as in sqlite:%[1]s", Redact(text), Supported)
	case scheme == "memory" && rest == "":
		return memstore.New(nil), nil
	case scheme == "memory":
		return nil, fmt.Errorf("store %q: memory: takes nothing after the colon", Redact(text))
	case scheme == "sqlite":
		return openSQLite(ctx, rest)
	default:
		return nil, fmt.Errorf("store %q: unknown scheme: %s are supported", Redact(text), Supported)
	}
}

// Redact returns a store URL without what may be a password, for people to
// read. It does not parse: a password that was not escaped as URLs want it, the
// common mistake, must not come through either. So whatever stands before the
// last @ goes, and whatever follows the first sign of a query or a setting.
func Redact(text string) string {
	scheme, rest, ok := strings.Cut(text, ":")
	if scheme == "sqlite" {
		return text // a path, which may have any of these characters
	}
	start := scheme + ":"
	if !ok || strings.ContainsAny(scheme, "@=?&; ") {
		start, rest = "", text // no scheme at all
	}
	if strings.HasPrefix(rest, "//") {
		start, rest = start+"//", rest[2:]
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		start, rest = start+"…@", rest[i+1:]
	} else if i := strings.IndexByte(rest, ':'); i >= 0 && strings.TrimLeft(rest[i+1:], "0123456789") == rest[i+1:] {
		return start + "…" // no port after the colon: the @ was forgotten
	}
	if i := strings.IndexAny(rest, "?=&;# "); i >= 0 {
		rest = rest[:i+1] + "…"
	}
	return start + rest
}
