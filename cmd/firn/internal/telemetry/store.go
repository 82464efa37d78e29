// Package telemetry shows what the server does: the store as it is seen from here, and
// traces.
package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/firn-id/firn/store"
)

// watched is a store whose calls are counted, timed and traced.
type watched struct {
	store   store.Store
	seconds *prometheus.HistogramVec
	failed  *prometheus.CounterVec
	tracer  trace.Tracer
}

// A timed store is one that has a clock. Code above asks for that by interface, so a
// watched store offers no more than the one within.
type timed struct {
	*watched
	clock  store.Clock
	offset prometheus.Gauge
}

// Watch returns the store with its calls observed: metrics go to a registry, spans to a
// tracer, as children of those that make the calls.
func Watch(s store.Store, to *prometheus.Registry, tracer trace.Tracer) store.Store {
	w := &watched{
		store: s, tracer: tracer,
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "firn_store_request_seconds", Help: "How long calls of the store took, by operation.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"operation"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_store_errors_total", Help: "Calls of the store that failed, by operation. A conflict of two writers is none.",
		}, []string{"operation"}),
	}
	to.MustRegister(w.seconds, w.failed)
	for _, operation := range []string{opGet, opSwap, opList, opNow} {
		w.failed.WithLabelValues(operation) // so that rates begin at 0
	}
	clock, tells := s.(store.Clock)
	if !tells {
		return w
	}
	t := timed{w, clock, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "firn_clock_offset_seconds", Help: "The store's clock less this machine's, when they were last compared.",
	})}
	to.MustRegister(t.offset)
	return t
}

// The operations, as metrics and spans name them.
const (
	opGet  = "get"
	opSwap = "compare_and_swap"
	opList = "list"
	opNow  = "now"
)

// observe begins a call; the function that it returns ends it.
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

// bad reports whether an error is one of the store's, rather than an answer or a caller
// that left.
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
	return r, err
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

// Embedded implements [store.Embedded] as the store within does.
func (w *watched) Embedded() bool {
	e, ok := w.store.(store.Embedded)
	return ok && e.Embedded()
}

// Now implements [store.Clock].
func (t timed) Now(ctx context.Context) (time.Time, error) {
	ctx, end := t.observe(ctx, opNow, "")
	start := time.Now()
	now, err := t.clock.Now(ctx)
	if err == nil {
		took := time.Since(start)
		t.offset.Set(now.Sub(start.Add(took / 2)).Seconds())
	}
	end(err)
	return now, err
}
