// Package telemetry is what a process tells about itself: a log for which nothing waits ([Queue]) and in which nothing is
// repeated often ([Seldom]), metrics of store calls ([Watch]), and traces ([Traces]).
package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/firn-id/firn/store"
)

// watched counts, times and traces the calls of a store.
type watched struct {
	store   store.Store
	seconds *prometheus.HistogramVec
	failed  *prometheus.CounterVec
	tracer  trace.Tracer
	offset  prometheus.Gauge

	mu   sync.Mutex // guards life
	life Life
}

// A Life is the life of a store, see [store.Entry], as this process has seen it in confirmed writes.
type Life struct {
	Name    string    `json:"name"`    // "": the store names none, or no write was confirmed yet
	Since   time.Time `json:"since"`   // the first write that was confirmed in it
	Earlier int       `json:"earlier"` // how many lives came before, since the start of the process
}

// Watch returns the store with its calls observed. Metrics go to the registry, and spans to the
// tracer, as children of the callers' spans.
func Watch(s store.Store, to *prometheus.Registry, tracer trace.Tracer) store.Store {
	w := &watched{
		store: s, tracer: tracer,
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "firn_store_request_seconds", Help: "Duration of store calls, by operation.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"operation"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_store_errors_total", Help: "Failed store calls, by operation. A conflict between two writers is not a failure.",
		}, []string{"operation"}),
	}
	to.MustRegister(w.seconds, w.failed)
	for _, operation := range []string{opGet, opSwap, opList, opNow} {
		w.failed.WithLabelValues(operation) // so that rates begin at 0
	}
	if s.Traits().Clock != nil {
		w.offset = prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "firn_clock_offset_seconds", Help: "The store's clock minus this machine's, at the last comparison.",
		})
		to.MustRegister(w.offset)
	}
	return w
}

// The operations, as metrics and spans name them.
const (
	opGet  = "get"
	opSwap = "compare_and_swap"
	opList = "list"
	opNow  = "now"
)

// observe records the start of a call; the returned function records its end.
func (w *watched) observe(ctx context.Context, operation, key string) (context.Context, func(error)) {
	start := time.Now()
	ctx, span := w.tracer.Start(ctx, "store."+operation, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("firn.key", key)))
	return ctx, func(err error) {
		w.seconds.WithLabelValues(operation).Observe(time.Since(start).Seconds())
		if bad(err) {
			w.failed.WithLabelValues(operation).Inc()
			span.RecordError(err)
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// bad reports whether an error is a failure of the store, and not an answer or a canceled call.
func bad(err error) bool {
	return err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrConflict) && !errors.Is(err, context.Canceled)
}

// Get implements [store.Store].
func (w *watched) Get(ctx context.Context, key string) (store.Entry, error) {
	ctx, end := w.observe(ctx, opGet, key)
	e, err := w.store.Get(ctx, key)
	end(err)
	return e, err
}

// CompareAndSwap implements [store.Store].
func (w *watched) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	ctx, end := w.observe(ctx, opSwap, key)
	r, err := w.store.CompareAndSwap(ctx, key, old, value)
	end(err)
	if err == nil {
		w.live(r.Life)
	}
	return r, err
}

func (w *watched) live(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.life.Since.IsZero():
		w.life = Life{Name: name, Since: time.Now().UTC()}
	case w.life.Name != name:
		w.life = Life{Name: name, Since: time.Now().UTC(), Earlier: w.life.Earlier + 1}
	}
}

// Life returns the present life of the store.
func (w *watched) Life() Life {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life
}

// List implements [store.Store].
func (w *watched) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	ctx, end := w.observe(ctx, opList, prefix)
	all, err := w.store.List(ctx, prefix)
	end(err)
	return all, err
}

// Close implements [store.Store].
func (w *watched) Close() error { return w.store.Close() }

// Traits returns those of the store, with its clock observed.
func (w *watched) Traits() store.Traits {
	of := w.store.Traits()
	if of.Clock != nil {
		of.Clock = clock{w, of.Clock}
	}
	return of
}

// A clock is that of a watched store.
type clock struct {
	*watched
	of store.Clock
}

// Now implements [store.Clock].
func (c clock) Now(ctx context.Context) (time.Time, error) {
	ctx, end := c.observe(ctx, opNow, "")
	start := time.Now()
	now, err := c.of.Now(ctx)
	if err == nil {
		took := time.Since(start)
		c.offset.Set(now.Sub(start.Add(took / 2)).Seconds())
	}
	end(err)
	return now, err
}
