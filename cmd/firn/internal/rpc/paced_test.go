package rpc

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store/memstore"
)

// deadlines is a response that counts how often its deadline is moved.
type deadlines struct {
	http.ResponseWriter
	moved int
}

func (d *deadlines) SetWriteDeadline(time.Time) error {
	d.moved++
	return nil
}

func TestAStreamWaitsForItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, err := issuing.Open(t.Context(), issuing.Config{
			Settings: settings.Config{Namespaces: map[string]settings.Namespace{"random": {Kind: "uuid"}}},
			Store:    memstore.New(nil), Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer service.Close()
		a := New(service, slog.New(slog.DiscardHandler))
		w := &deadlines{ResponseWriter: httptest.NewRecorder()}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), exchangeKey{}, &exchange{response: w}))
		s, err := a.steer(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer s.release()

		tooFast := func(after time.Duration) error {
			return &failure.Failure{Status: http.StatusTooManyRequests, Code: "rate_limited", Retry: after}
		}
		// play returns each error in turn, and then nil.
		play := func(answers ...error) (took time.Duration, calls int, err error) {
			start := time.Now()
			err = a.paced(ctx, s.extend, func() error {
				calls++
				if calls > len(answers) {
					return nil
				}
				return answers[calls-1]
			})
			return time.Since(start), calls, err
		}
		if took, calls, err := play(tooFast(time.Second), tooFast(300*time.Millisecond)); took != 1300*time.Millisecond || calls != 3 || err != nil {
			t.Error(took, calls, err)
		}
		if took, calls, err := play(tooFast(time.Hour), tooFast(time.Hour)); took != 2*longestPause || calls != 3 || err != nil {
			t.Error(took, calls, err)
		}
		for _, other := range []error{tooFast(0), failure.BadRequest("bad_count", "0"), failure.New(http.StatusServiceUnavailable, "fence_reached", "x")} {
			if took, calls, err := play(other); took != 0 || calls != 1 || !errors.Is(err, other) {
				t.Error(took, calls, err)
			}
		}
		var many []error
		for range 100 {
			many = append(many, tooFast(time.Hour))
		}
		w.moved = 0
		took, _, err := play(many...)
		if f := failure.Of(err); took != longestWait || f.Code != "rate_limited" {
			t.Error(took, err)
		}
		if w.moved < int(longestWait/stall) { // with fewer, the wait would end the stream
			t.Errorf("the deadline was moved %d times in %v", w.moved, took)
		}

		time.AfterFunc(time.Second, cancel)
		if took, _, err := play(many...); took != time.Second || failure.Of(err).Code != "canceled" {
			t.Error(took, err)
		}
		ctx = t.Context()
		time.AfterFunc(time.Second, a.Drain)
		if took, _, err := play(many...); took != time.Second || failure.Of(err).Code != "shutting_down" {
			t.Error(took, err)
		}
		synctest.Wait()
	})
}
