package zkstore

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store"
)

// classify says what kind an error is, and a way out of it if one is known.
// Refused is only what the server finds before it writes.
func classify(err error) (hint string, kind error) {
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return "the znodes are another user's: zookeeper://USER:PASSWORD@HOST, or another path", store.ErrRefused
	case errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return "check user and password", store.ErrRefused
	case errors.Is(err, zk.ErrNoServer):
		return "none of its servers could be reached", store.ErrUnavailable
	default:
		return "", store.ErrUnavailable
	}
}
