package issuing_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

// The answer to an internal error says that the log has it.
func TestInternalErrorsAreInTheLog(t *testing.T) {
	out := new(lines)
	var now atomic.Int64
	mem := memstore.New(nil)
	if _, err := mem.CompareAndSwap(t.Context(), "firn/counter:orders", 0, []byte("no record of ours")); err != nil {
		t.Fatal(err)
	}
	s := opened(t, mem, "namespaces: {orders: {kind: segment}, items: {kind: segment}}", func(c *issuing.Config) {
		c.Log, c.Monotonic = slog.New(slog.NewTextHandler(out, nil)), func() time.Duration { return time.Duration(now.Load()) }
	})
	f := s.Front(issuing.RESP)
	logged := func() int { return strings.Count(out.String(), "level=ERROR msg=") }
	var b issuing.Batch
	err := take(t, f, local(t, f), "orders", 1, &b)
	if got := failure.Of(err); got.Code != failure.Mismatch || logged() != 1 || !strings.Contains(out.String(), "namespace=orders") || !strings.Contains(out.String(), "invalid character") {
		t.Fatalf("%v (%s): %s", err, got.Code, out.String())
	}
	_ = f.Refuse(failure.BadRequest("bad_request", "of the client"))
	for range 10 {
		_ = take(t, f, local(t, f), "orders", 1, &b)
	}
	if logged() != 1 {
		t.Errorf("it is logged each time: %s", out.String())
	}
	for i := range 100 {
		_ = f.Refuse(fmt.Errorf("unknown %d", i))
	}
	if logged() != 20 {
		t.Errorf("%d are logged", logged())
	}
	now.Add(int64(10 * time.Second))
	_ = f.Refuse(errors.New("unknown"))
	if logged() != 21 || !strings.Contains(out.String(), "error=unknown omitted=81\n") {
		t.Errorf("%d are logged, the last: %s", logged(), out.String())
	}
}
