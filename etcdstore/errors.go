package etcdstore

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/internal/backend"
	"github.com/firn-id/firn/store"
)

// wrap says where an error came from and what kind it is.
func (s *Store) wrap(op, key string, err error) error {
	hint, kind := classify(err)
	return backend.Wrap("etcdstore", op, key, err, hint, kind)
}

// classify says what kind an error is, and a way out of it if one is known.
// Refused is only what the server answers before it proposes a write.
func classify(err error) (hint string, kind error) {
	text := err.Error()
	switch {
	case errors.Is(err, store.ErrRefused):
		return "", store.ErrRefused
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "", store.ErrUnavailable // whatever the reason says
	case is(err, rpctypes.ErrAuthFailed):
		return "check user and password", store.ErrRefused
	case is(err, rpctypes.ErrUserEmpty):
		return "it wants a user: etcd://USER:PASSWORD@HOST", store.ErrRefused
	case is(err, rpctypes.ErrAuthNotEnabled):
		return "it has no users: leave USER:PASSWORD out of the URL", store.ErrRefused
	case is(err, rpctypes.ErrPermissionDenied):
		return "grant the user's role readwrite on the prefix: etcdctl role grant-permission ROLE readwrite --prefix=true PREFIX", store.ErrRefused
	case is(err, rpctypes.ErrNoSpace):
		return "its quota is used up: compact, defragment and disarm the alarm, or raise --quota-backend-bytes", store.ErrUnavailable // it may be found only when a write is applied
	case is(err, rpctypes.ErrRequestTooLarge):
		return "raise --max-request-bytes", store.ErrRefused
	case is(err, rpctypes.ErrNoLeader), is(err, rpctypes.ErrLeaderChanged):
		return "most of its members must be up and see each other", store.ErrUnavailable
	case strings.Contains(text, "first record does not look like a TLS handshake"),
		strings.Contains(text, "authentication handshake failed") && // it hangs up, nicely or not
			(strings.Contains(text, "EOF") || strings.Contains(text, "connection reset by peer")):
		return "it does not speak TLS: leave out tls=true", store.ErrUnavailable
	case strings.Contains(text, "certificate signed by unknown authority"):
		return "name the authority's certificate with tls_ca=FILE", store.ErrUnavailable
	case strings.Contains(text, "certificate is valid for"), strings.Contains(text, "cannot validate certificate"):
		return "its certificate is for another name: use that, or tls_server_name=NAME", store.ErrUnavailable
	case strings.Contains(text, "error reading server preface"):
		return "if it speaks TLS, add ?tls=true", store.ErrUnavailable
	case status.Code(err) == codes.Unimplemented:
		return "it is no etcd v3", store.ErrRefused
	default:
		return "", store.ErrUnavailable
	}
}

// is tells etcd's errors by their text: the client and the server each have a
// type of their own for them.
func is(err, target error) bool { return strings.Contains(err.Error(), target.Error()) }
