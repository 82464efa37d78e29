package etcdstore

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/store"
)

// answers maps etcd's errors to kinds and hints. ErrRefused: found before a write is proposed.
var answers = []struct {
	err, kind error
	hint      string
}{
	{rpctypes.ErrAuthFailed, store.ErrRefused, "check user and password"},
	{rpctypes.ErrUserEmpty, store.ErrRefused, "it requires a user: etcd://USER:PASSWORD@HOST"},
	{rpctypes.ErrAuthNotEnabled, store.ErrRefused, "it has no users: leave USER:PASSWORD out of the URL"},
	{rpctypes.ErrPermissionDenied, store.ErrRefused, "grant the user's role readwrite on PREFIX/, as in the URL, or on firn/ if that has none: etcdctl role grant-permission ROLE readwrite --prefix=true PREFIX/"},
	{rpctypes.ErrRequestTooLarge, store.ErrRefused, "raise --max-request-bytes"},
	// The server may find this only when it applies a write.
	{rpctypes.ErrNoSpace, store.ErrUnavailable, "its quota is used up: compact, defragment and disarm the alarm, or raise --quota-backend-bytes"},
	{rpctypes.ErrNoLeader, store.ErrUnavailable, "most of its members must be up and see each other"},
	{rpctypes.ErrLeaderChanged, store.ErrUnavailable, "most of its members must be up and see each other"},
}

// classify returns an error's kind and a hint.
func classify(err error) (hint string, kind error) {
	says := func(text string) bool { return strings.Contains(err.Error(), text) }
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "", store.ErrUnavailable // whatever the reason's text contains
	case says("first record does not look like a TLS handshake"),
		says("TLS handshake with") && (says("EOF") || says("connection reset by peer")): // it closes the connection, cleanly or not
		return "it does not speak TLS: leave out tls=true", store.ErrUnavailable
	case says("error reading server preface"):
		return "if it speaks TLS, add ?tls=true", store.ErrUnavailable
	case status.Code(err) == codes.Unimplemented:
		return "it is not an etcd v3", store.ErrRefused
	}
	for _, a := range answers {
		if says(a.err.Error()) { // client and server use different types
			return a.hint, a.kind
		}
	}
	return "", store.ErrUnavailable
}
