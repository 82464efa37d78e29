package cosid_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/firntest"
)

func TestFailuresAreLoggedOnceInTenSeconds(t *testing.T) {
	var out bytes.Buffer
	clock := firntest.NewClock(start)
	cfg := config()
	cfg.Time, cfg.Log = clock, slog.New(slog.NewTextHandler(&out, nil))
	cfg.Issue = func(context.Context, *access.Caller, string, bool) (string, error) {
		return "", context.DeadlineExceeded
	}
	h := serve(t, cfg)
	for round := range 3 {
		for i := range 1000 {
			ask(h, fmt.Sprintf("GET /ids/n%d", i))
		}
		if n := strings.Count(out.String(), "CosId request failed"); n != round+1 {
			t.Errorf("logged %d times in %d rounds", n, round+1)
		}
		clock.Pass(10 * time.Second)
	}
	if !strings.Contains(out.String(), "omitted=999") {
		t.Errorf("the number of omitted failures is missing: %s", out.String())
	}
}

func TestAnInternalErrorIsAnErrorInTheLog(t *testing.T) {
	var out bytes.Buffer
	cfg := config()
	cfg.Log = slog.New(slog.NewTextHandler(&out, nil))
	cfg.Issue = func(context.Context, *access.Caller, string, bool) (string, error) {
		return "", errors.New("a fault of ours")
	}
	h := serve(t, cfg)
	for range 10 {
		ask(h, "GET /ids/orders")
		ask(h, "GET /segments/orders?namespace=a%zz") // the client's
	}
	if text := out.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "a fault of ours") {
		t.Errorf("%s", text)
	}
}
