package failure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// Clients must not see addresses of the store or other texts of a driver. The log has them.
func TestMessagesHideTheStoresErrors(t *testing.T) {
	read := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("i/o timeout"),
		Source: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 38050}, Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 4), Port: 6379}}
	failed := func(in, op, key string, err error) error {
		return &store.CallError{Store: in, Op: op, Key: key, Err: err, Hint: "hint"}
	}
	away := failed("redisstore", "compare-and-swap", "firn/counter:txn", fmt.Errorf("%w: %w", store.ErrUnavailable, read))
	denied := failed("sqlstore", "get", "k", fmt.Errorf("%w: Error 1045: Access denied for user 'firn'@'10.1.2.3'", store.ErrRefused))
	for _, c := range []struct {
		err           error
		code, message string
	}{
		{fmt.Errorf("sequence %q: add: %w", "txn", away), "store_unavailable", `sequence "txn": add: the store is unavailable`},
		{fmt.Errorf("sequence %q: add: no answer within 5s: %w", "txn", &store.TextError{Kind: store.ErrUnavailable, Err: away}), "store_unavailable", `sequence "txn": add: no answer within 5s: the store is unavailable`},
		{fmt.Errorf("%w: %w", store.ErrUnavailable, read), "store_unavailable", "unavailable: the server's log has the error"},
		{read, "internal", "the server's log has the error"},
		{fmt.Errorf("%w; pool %q: %w", away, "default", &os.PathError{Op: "stat", Path: "/srv/firn.db", Err: os.ErrPermission}), "store_unavailable",
			"the store is unavailable; pool \"default\": the server's log has the error"},
		// A name may have the words of an error.
		{fmt.Errorf("sequence %q: add: %w", "unavailable-items", away), "store_unavailable", `sequence "unavailable-items": add: the store is unavailable`},
		{fmt.Errorf("sequence %q: add: %w", "refused.not_found-mystore", denied), "internal", `sequence "refused.not_found-mystore": add: the store refused`},
		{away, "store_unavailable", "the store is unavailable"},
		{fmt.Errorf("sequence %q: read: %w", "txn", denied), "internal", `sequence "txn": read: the store refused`},
		{fmt.Errorf("numbering: read the store's clock: %w", failed("sqlstore", "read the time", "", fmt.Errorf("dial tcp 10.1.2.3:3306: %w", context.DeadlineExceeded))), "timed_out", "numbering: read the store's clock: the store did not answer in time"},
		{failed("sqlstore", "get", "k", errors.New("10.1.2.3 said something new")), "internal", "the store failed"},
		{fmt.Errorf("pool %q: %w", "default", failed("etcdstore", "get", "k", store.ErrNotFound)), "not_found", `pool "default": not found`},
		{&firn.ClockBackError{Why: "switch: lease: " + away.Error(), Switch: fmt.Errorf("lease: %w", away)}, "clock_back", "clock moved back by 0s: it reads 0001-01-01T00:00:00.000Z after 0001-01-01T00:00:00.000Z; switch: lease: the store is unavailable"},
		{&firn.ClockBackError{Switch: store.ErrNotFound}, "clock_back", "clock moved back by 0s: it reads 0001-01-01T00:00:00.000Z after 0001-01-01T00:00:00.000Z"},
		{fmt.Errorf("lease: %w", &firn.FenceError{Worker: 7}), "fence_reached", "lease: fence of worker 7 reached at 0001-01-01T00:00:00.000Z: the generator continues when the lease is renewed"},
		{&store.TakenError{Counter: "o", What: "key", Key: "0", Have: "c3daff80eb53cc4a", Want: "2c9b53174f15289e"}, "store_mismatch", `the counter "o" has another key 0, and ids could repeat: use another name, or the key of those who use it`},
		{fmt.Errorf("x: %w", &store.TakenError{Counter: "o", What: "kind", Have: "sequence", Want: "segment"}), "store_mismatch", `x: the counter "o" has the kind "sequence", not "segment", and ids could repeat: use another name, or the settings of those who use it`},
		{&segment.StripeError{Name: "o", Want: segment.Stripe{Offset: 1, Stride: 2}}, "store_mismatch", `segment: "o" has offset 0 of stride 0, not offset 1 of stride 2: set that of the store, or use another name`},
		{context.DeadlineExceeded, "timed_out", "no answer within the server's own time: retry; if it remains, look at the store"},
	} {
		f := failure.Of(fmt.Errorf("%w", c.err))
		if f.Code != c.code || f.Message != c.message {
			t.Errorf("%v:\n%s %q, want\n%s %q", c.err, f.Code, f.Message, c.code, c.message)
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("request failed", "error", error(f))
		if text := strings.ReplaceAll(log.String(), `\"`, `"`); !strings.Contains(text, c.err.Error()) {
			t.Errorf("the log has %s, want %q in it", text, c.err)
		}
	}
}

func TestARetryIsAdvisedWhereItHelps(t *testing.T) {
	for err, want := range map[error]time.Duration{
		store.ErrUnavailable: time.Second, firn.ErrFence: time.Second, store.ErrSetBack: time.Second,
		segment.ErrExhausted: 0, sequence.ErrExhausted: 0, firn.ErrTimeExhausted: 0, store.ErrForeign: 0, firn.ErrSyntax: 0,
	} {
		if got := failure.Of(err).Retry; got != want {
			t.Errorf("%v: after %v, want %v", err, got, want)
		}
	}
}

func TestAVeilHidesWhyTheServerCannotIssueAndNotWhatIsWrongWithARequest(t *testing.T) {
	const hidden = "ids cannot be issued now; callers that may unveil them see why"
	ended, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, c := range []struct {
		err     error
		message string
	}{
		{&firn.FenceError{Worker: 7}, hidden},
		{errors.New("of worker 7"), hidden},
		{failure.Of(&firn.FenceError{Worker: 7}), hidden},
		{failure.New(503, failure.Joining, "waits for the fence of worker 7").After(time.Second), hidden},
		{&sequence.ExhaustedError{Name: "txn", Left: 7}, "the namespace has fewer ids left than this request needs"},
		{failure.BadRequest("bad_count", "count 0"), "count 0"},
		{failure.New(503, "overloaded", "ask later"), "ask later"},
		{failure.OfDeadline(ended, context.DeadlineExceeded), failure.Of(failure.OfDeadline(ended, context.DeadlineExceeded)).Message},
	} {
		f, was := failure.Veiled(c.err), failure.Of(c.err)
		if f.Message != c.message || f.Code != was.Code || f.Status != was.Status || f.Retry != was.Retry {
			t.Errorf("%v: %+v", c.err, f)
		}
		if f.Message != was.Message && f.LogValue().String() != c.err.Error() {
			t.Errorf("the log has %v, want %v", f.LogValue(), c.err)
		}
	}
}
