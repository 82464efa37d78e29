package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/store"
)

func TestEveryStatusMapsToACode(t *testing.T) {
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	a := &API{log: slog.New(slog.DiscardHandler)}
	for _, c := range []struct {
		ctx   context.Context
		err   error
		code  connect.Code
		word  string
		retry bool
	}{
		{t.Context(), failure.BadRequest("bad_count", "count 0"), connect.CodeInvalidArgument, "bad_count", false},
		{t.Context(), failure.New(401, "unauthorized", "who"), connect.CodeUnauthenticated, "unauthorized", false},
		{t.Context(), failure.New(403, "forbidden", "no"), connect.CodePermissionDenied, "forbidden", false},
		{t.Context(), failure.New(404, "unknown_namespace", "x"), connect.CodeNotFound, "unknown_namespace", false},
		{t.Context(), failure.New(409, "conflict", "x"), connect.CodeInvalidArgument, "conflict", false},
		{t.Context(), failure.New(413, "batch_too_large", "x"), connect.CodeResourceExhausted, "batch_too_large", false},
		{t.Context(), &failure.Failure{Status: 429, Code: "rate_limited", Retry: time.Second}, connect.CodeResourceExhausted, "rate_limited", true},
		{t.Context(), fmt.Errorf("lease: %w", firn.ErrFence), connect.CodeUnavailable, "fence_reached", true},
		{t.Context(), store.ErrUnavailable, connect.CodeUnavailable, "store_unavailable", true},
		{t.Context(), context.Canceled, connect.CodeCanceled, "canceled", false},
		{t.Context(), context.DeadlineExceeded, connect.CodeUnavailable, "timed_out", true}, // the server's own timeout
		{late, context.DeadlineExceeded, connect.CodeDeadlineExceeded, "timed_out", true},
		{late, failure.OfDeadline(late, context.DeadlineExceeded), connect.CodeDeadlineExceeded, "canceled", true},
		{t.Context(), fmt.Errorf("never seen"), connect.CodeInternal, "internal", false},
	} {
		got := a.fail(c.ctx, c.err)
		word, retry := "", false
		for _, d := range got.Details() {
			switch v, err := d.Value(); v := v.(type) {
			case *errdetails.ErrorInfo:
				word = v.GetReason()
			case *errdetails.RetryInfo:
				retry = v.GetRetryDelay().AsDuration() > 0
			default:
				t.Error(v, err)
			}
		}
		if got.Code() != c.code || word != c.word || retry != c.retry {
			t.Errorf("%v: %v, %s, retry %t; want %v, %s, %t", c.err, got.Code(), word, retry, c.code, c.word, c.retry)
		}
	}
}
