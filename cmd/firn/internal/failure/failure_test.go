package failure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/store"
)

// What is told to clients has no address of the store in it, nor what else a driver says;
// the log has it all.
func TestClientsAreNotToldWhatTheStoreSaid(t *testing.T) {
	read := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("i/o timeout"),
		Source: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 38050}, Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 4), Port: 6379}}
	away := fmt.Errorf("redisstore: compare-and-swap %q: %w: %w", "firn/sequence/txn", store.ErrUnavailable, read)
	denied := fmt.Errorf("sqlstore: get %q: %w: Error 1045: Access denied for user 'firn'@'10.1.2.3' (check user)", "k", store.ErrRefused)
	for _, c := range []struct {
		err        error
		code, told string
	}{
		{fmt.Errorf("sequence %q: add: %w", "txn", away), "store_unavailable", `sequence "txn": add: the store is unavailable`},
		{fmt.Errorf("sequence %q: add: no answer within 5s: %w: %s", "txn", store.ErrUnavailable, away.Error()), "store_unavailable", `sequence "txn": add: no answer within 5s: the store is unavailable`},
		{fmt.Errorf("%w: dial tcp 10.1.2.3:6379: connection refused", store.ErrUnavailable), "store_unavailable", "the store is unavailable"},
		{away, "store_unavailable", "the store is unavailable"},
		{fmt.Errorf("sequence %q: read: %w", "txn", denied), "internal", `sequence "txn": read: the store refused`},
		{fmt.Errorf("numbering: read the store's clock: sqlstore: read the time: dial tcp 10.1.2.3:3306: %w", context.DeadlineExceeded), "timed_out", "numbering: read the store's clock: no answer of the store in time"},
		{fmt.Errorf("sqlstore: get %q: 10.1.2.3 said something new", "k"), "internal", "the store failed"},
		{fmt.Errorf("pool %q: etcdstore: get %q: %w", "default", "k", store.ErrNotFound), "not_found", `pool "default": not found`},
		{&firn.ClockBackError{Why: "switch: lease: " + away.Error(), Switch: fmt.Errorf("lease: %w", away)}, "clock_back", "clock moved back by 0s: it reads 0001-01-01T00:00:00.000Z after 0001-01-01T00:00:00.000Z; switch: lease: the store is unavailable"},
		{&firn.ClockBackError{Switch: store.ErrNotFound}, "clock_back", "clock moved back by 0s: it reads 0001-01-01T00:00:00.000Z after 0001-01-01T00:00:00.000Z"},
		{fmt.Errorf("lease: %w", &firn.FenceError{Worker: 7}), "fence_reached", "lease: fence of worker 7 reached at 0001-01-01T00:00:00.000Z: ids go on when the lease is renewed"},
		{context.DeadlineExceeded, "timed_out", "context deadline exceeded"},
	} {
		told := failure.Of(fmt.Errorf("%w", c.err))
		if told.Code != c.code || told.Message != c.told {
			t.Errorf("%v:\n%s %q, want\n%s %q", c.err, told.Code, told.Message, c.code, c.told)
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("request failed", "error", error(told))
		if text := strings.ReplaceAll(log.String(), `\"`, `"`); !strings.Contains(text, c.err.Error()) {
			t.Errorf("the log has %s and not %q", text, c.err)
		}
	}
}
