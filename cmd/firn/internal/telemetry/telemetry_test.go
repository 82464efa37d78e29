package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traced "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// watched returns s with its calls observed, and the registry of its metrics.
func watched(s store.Store) (store.Store, *prometheus.Registry) {
	registry := prometheus.NewRegistry()
	return telemetry.Watch(s, registry, telemetry.Off().Tracer()), registry
}

func TestAWatchedStoreIsAStore(t *testing.T) {
	storetest.Run(t, storetest.Factory{Open: func(*testing.T) store.Store {
		s, _ := watched(memstore.New(nil))
		return s
	}})
}

// A mortal store has a life, which may be changed.
type mortal struct {
	store.Store
	life string
}

func (*mortal) Traits() store.Traits { return store.Traits{} }

func (m *mortal) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	entry, err := m.Store.CompareAndSwap(ctx, key, old, value)
	entry.Life = m.life
	return entry, err
}

func TestAWatchedStoreKnowsItsLifeByConfirmedWrites(t *testing.T) {
	m := &mortal{Store: memstore.New(nil)}
	s, _ := watched(m)
	life := func() telemetry.Life { return s.(interface{ Life() telemetry.Life }).Life() }
	if l := life(); !l.Since.IsZero() {
		t.Errorf("before the first write: %+v", l)
	}
	var last telemetry.Life
	for i, name := range []string{"a", "a", "b", "", "b"} {
		m.life = name
		if _, err := s.CompareAndSwap(t.Context(), fmt.Sprint("key", i), 0, nil); err != nil {
			t.Fatal(err)
		}
		l := life()
		if want := []int{0, 0, 1, 2, 3}[i]; l.Name != name || l.Earlier != want || l.Since.Equal(last.Since) != (i == 1) {
			t.Errorf("write %d: %+v after %+v, want %s and %d earlier", i, l, last, name, want)
		}
		last = l
	}
	m.life = "c"
	if _, err := s.CompareAndSwap(t.Context(), "key0", 0, nil); err == nil || life() != last {
		t.Errorf("a write that was not confirmed (%v) begins %+v", err, life())
	}
}

type withClock struct {
	store.Store
	ahead time.Duration
}

func (w withClock) Traits() store.Traits { return store.Traits{Clock: w} }

func (w withClock) Now(context.Context) (time.Time, error) { return time.Now().Add(w.ahead), nil }

func TestAWatchedStoreHasAClockIfTheStoreHas(t *testing.T) {
	bare := memstore.New(nil)
	for name, c := range map[string]struct {
		store store.Store
		clock bool
	}{"no clock": {bare, false}, "clock": {withClock{bare, time.Hour}, true}} {
		s, registry := watched(c.store)
		clock := s.Traits().Clock
		if (clock != nil) != c.clock {
			t.Errorf("%s: a clock: %v", name, clock)
		}
		if clock == nil {
			continue
		}
		if now, err := clock.Now(t.Context()); err != nil || time.Until(now) < 59*time.Minute {
			t.Errorf("%s: %v, %v", name, now, err)
		}
		offset := gathered(t, registry, "firn_clock_offset_seconds")
		if offset < 3590 || offset > 3610 {
			t.Errorf("%s: offset %v", name, offset)
		}
	}
}

// gathered adds up the values of a metric.
func gathered(t *testing.T, registry *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestAConflictIsNotCountedAsAStoreError(t *testing.T) {
	s, registry := watched(memstore.New(nil))
	if _, err := s.Get(t.Context(), "none"); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := s.CompareAndSwap(t.Context(), "a", 7, []byte("x")); !errors.Is(err, store.ErrConflict) {
		t.Fatal(err)
	}
	if n := gathered(t, registry, "firn_store_errors_total"); n != 0 {
		t.Errorf("%v errors", n)
	}
	if n := testutil.CollectAndCount(registry, "firn_store_request_seconds"); n != 2 {
		t.Errorf("%d operations were timed", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "none"); !errors.Is(err, store.ErrUnavailable) {
		t.Fatal(err)
	}
	if n := gathered(t, registry, "firn_store_errors_total"); n != 1 {
		t.Errorf("%v errors of a closed store", n)
	}
}

func TestSpansAreExportedToTheEnvironmentsEndpoint(t *testing.T) {
	received := make(chan *collector.ExportTraceServiceRequest, 10)
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err := errors.Join(err, proto.Unmarshal(body, &request)); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		received <- &request
	}))
	defer sink.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.URL)
	traces, err := telemetry.Start(t.Context(), "v9", slog.New(slog.DiscardHandler))
	if err != nil || !traces.On() {
		t.Fatalf("%v, on %v", err, err == nil && traces.On())
	}
	s := telemetry.Watch(memstore.New(nil), prometheus.NewRegistry(), traces.Tracer())
	h := traces.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			return
		}
		if _, err := s.Get(r.Context(), "firn/orders"); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	}))
	for _, path := range []string{"/v1/ids/orders", "/livez"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	const call = "firn.v1.IDService/Generate"
	_, end := traces.Call(t.Context(), call, func(name string) string {
		return map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}[name]
	})
	end(errors.New("refused"))
	if err := traces.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(received)
	spans := map[string]*traced.Span{}
	for request := range received {
		for _, rs := range request.GetResourceSpans() {
			if about := rs.GetResource().String(); !strings.Contains(about, "firn") || !strings.Contains(about, "v9") {
				t.Errorf("resource %s", about)
			}
			for _, ss := range rs.GetScopeSpans() {
				for _, span := range ss.GetSpans() {
					spans[span.GetName()] = span
				}
			}
		}
	}
	if s := spans[call]; s == nil || fmt.Sprintf("%x", s.GetParentSpanId()) != "b7ad6b7169203331" || s.GetStatus().GetMessage() != "refused" {
		t.Errorf("the span of a call of gRPC: %v", s)
	}
	delete(spans, call)
	get := spans["store.get"]
	if len(spans) != 2 || get == nil {
		t.Fatalf("spans %v", spans)
	}
	delete(spans, "store.get")
	for _, request := range spans {
		if string(get.GetParentSpanId()) != string(request.GetSpanId()) || len(request.GetParentSpanId()) == 0 {
			t.Errorf("the span of the store call is not a child of the request's: %v, %v", get, request)
		}
	}
}

func TestTracesAreOffByDefaultAndBadSettingsAreRefused(t *testing.T) {
	for _, c := range []struct {
		set   map[string]string
		fails string
	}{
		{nil, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "zipkin"}, "zipkin"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "4318"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "::bad"}, "OTEL_EXPORTER_OTLP_ENDPOINT=::bad: it must be a URL, such as http://collector:4318"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318: "},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT=http://:4318: "},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ftp://me:secret@collector"}, "OTEL_EXPORTER_OTLP_ENDPOINT=…@collector: "},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "127.0.0.1"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=127.0.0.1: "},
	} {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
			t.Setenv(name, c.set[name])
		}
		traces, err := telemetry.Start(t.Context(), "v9", slog.New(slog.DiscardHandler))
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%v: %v", c.set, err)
			}
			continue
		}
		if err != nil || traces.On() {
			t.Errorf("%v: %v, on %v", c.set, err, err == nil)
		}
	}
}

// A collector that is away refuses hundreds of spans at a time.
func TestTracesThatCannotBeSentAreOneLineAMinute(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
	var out strings.Builder
	traces, err := telemetry.Start(t.Context(), "v9", slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = traces.Stop(context.Background()) }) // nothing is left to export
	for range 100 {
		otel.Handle(errors.New("refused"))
	}
	if n := strings.Count(out.String(), "traces could not be sent"); n != 1 {
		t.Errorf("%d lines: %s", n, out.String())
	}
}
