package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/client"
)

// ofContexts returns the context errors that err matches.
func ofContexts(err error) (names []string) {
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			names = append(names, end.Error())
		}
	}
	return names
}

func TestAnErrorMatchesTheCallersContextOnlyIfThatHasEnded(t *testing.T) {
	for name, calling := range map[string]struct {
		begin func() (context.Context, context.CancelFunc)
		want  []string
	}{
		"no end": {func() (context.Context, context.CancelFunc) { return context.Background(), func() {} }, nil},
		"cancelled": {func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(4500*time.Millisecond, cancel)
			return ctx, cancel
		}, []string{context.Canceled.Error()}},
		"a deadline": {func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 4500*time.Millisecond)
		}, []string{context.DeadlineExceeded.Error()}},
		"a cause": {func() (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(context.Background(), 4500*time.Millisecond, errors.New("lunch"))
		}, []string{context.DeadlineExceeded.Error()}},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := network{"a": {kind: "snowflake", hangs: true}, "b": {kind: "snowflake", hangs: true}}.config()
			var left []error
			cfg.Hooks.Server = func(_ string, err error) { left = append(left, err) }
			c := newClient(t, cfg)
			orders := ids(t, c, "orders")
			for what, call := range map[string]func(context.Context) error{
				"Next":  func(ctx context.Context) error { _, err := orders.Next(ctx); return err },
				"Fetch": func(ctx context.Context) error { _, err := fetchOne(ctx, orders); return err },
			} {
				ctx, cancel := calling.begin()
				err := call(ctx)
				cancel()
				if got := ofContexts(err); err == nil || !slices.Equal(got, calling.want) {
					t.Errorf("%s, %s: %v: matches %v, want %v", name, what, err, got, calling.want)
				}
				if name == "no end" && !errors.Is(err, client.ErrUnavailable) {
					t.Errorf("%s: %v", what, err)
				}
			}
			for _, err := range left {
				if got := ofContexts(err); got != nil || !strings.Contains(err.Error(), "no answer within ") {
					t.Errorf("%s: the hook got %v, which matches %v", name, err, got)
				}
			}
			if len(left) == 0 {
				t.Errorf("%s: no server was left", name)
			}
		})
	}
}

func TestTheEndOfOneCallersContextDoesNotFailAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := network{"a": {kind: "sequence", hangs: true}}.config()
		c := newClient(t, cfg)
		txn := ids(t, c, "txn")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(context.Canceled) })
		if _, err := fetchOne(ctx, txn); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if err := c.State().Servers[0].Err; len(ofContexts(err)) > 0 || !strings.Contains(fmt.Sprint(err), "no answer within 1s") {
			t.Errorf("the server's error is %v", err)
		}
		if _, err := fetchOne(t.Context(), txn); !errors.Is(err, client.ErrUnavailable) || len(ofContexts(err)) > 0 {
			t.Errorf("%v", err)
		}
	})
}

// timing is a transport whose requests time out.
type timing struct{}

func (timing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("dial: %w", context.DeadlineExceeded) // as time-outs of package net do
}

func TestATransportTimeOutDoesNotMatchTheCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, client.Config{Servers: []string{"http://a"}, HTTP: &http.Client{Transport: timing{}}})
		_, err := fetchOne(t.Context(), ids(t, c, "orders"))
		if !errors.Is(err, client.ErrUnavailable) || len(ofContexts(err)) > 0 || !strings.Contains(err.Error(), "http://a: dial: ") {
			t.Errorf("%v", err)
		}
	})
}
