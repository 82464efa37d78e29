package zkstore

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store"
)

// wrap says where an error came from and what kind it is.
func wrap(op, key string, err error) error {
	kind, hint := classify(err)
	switch {
	case errors.Is(err, kind):
		return fmt.Errorf("zkstore: %s %q: %w", op, key, err)
	case hint == "":
		return fmt.Errorf("zkstore: %s %q: %w: %w", op, key, kind, err)
	default:
		return fmt.Errorf("zkstore: %s %q: %w: %w (%s)", op, key, kind, err, hint)
	}
}

// classify says what kind an error is, and a way out of it if one is known.
// Refused is only what the server finds before it writes.
func classify(err error) (kind error, hint string) {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.ErrNotFound, ""
	case errors.Is(err, store.ErrRefused):
		return store.ErrRefused, ""
	case errors.Is(err, zk.ErrNoAuth):
		return store.ErrRefused, "the znodes are another user's: zookeeper://USER:PASSWORD@HOST, or another path"
	case errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return store.ErrRefused, "check user and password"
	case errors.Is(err, zk.ErrNoServer):
		return store.ErrUnavailable, "none of its servers could be reached"
	default:
		return store.ErrUnavailable, ""
	}
}
