package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	metrics "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/firn-id/firn"
)

// inHeaders is how requests name their trace.
var inHeaders = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// Traces export spans. The zero value is not usable; see [Start].
type Traces struct {
	provider trace.TracerProvider
	stop     func(context.Context) error
}

// Off returns traces that discard all spans, at almost no cost.
func Off() *Traces {
	return &Traces{provider: noop.NewTracerProvider(), stop: func(context.Context) error { return nil }}
}

// Start exports traces over HTTP, configured by OpenTelemetry's environment variables:
// OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_TRACES_SAMPLER,
// OTEL_SERVICE_NAME and the others of its specification. Without an endpoint it returns [Off].
func Start(ctx context.Context, version string, log *slog.Logger) (*Traces, error) {
	variable, endpoint := endpoint()
	if endpoint == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return Off(), nil
	}
	switch exporter := os.Getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return Off(), nil
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER=%s: otlp and none are allowed", exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := os.Getenv(name); protocol != "" && protocol != "http/protobuf" {
			return nil, fmt.Errorf("%s=%s: only http/protobuf is supported (collectors accept it on port 4318)", name, protocol)
		}
	}
	if err := checkEndpoint(variable, endpoint); err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("firn"), semconv.ServiceVersion(version)),
		resource.WithHost(), resource.WithFromEnv()) // last, so that the environment wins
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	failed, clock := NewSeldom(time.Minute), firn.SystemTime() // a collector that is away refuses many spans a second
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if omitted, due := failed.Due(clock.Monotonic()); due {
			log.Warn("traces could not be sent", "error", err, "omitted", omitted)
		}
	}))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return &Traces{provider: provider, stop: provider.Shutdown}, nil
}

// endpoint returns the endpoint for traces, and the variable that sets it. The one for traces
// only has precedence.
func endpoint() (variable, value string) {
	for _, variable = range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if value = strings.TrimSpace(os.Getenv(variable)); value != "" {
			break
		}
	}
	return variable, value
}

// checkEndpoint refuses values that the exporter would ignore: it would send traces to localhost
// instead.
func checkEndpoint(variable, value string) error {
	u, err := url.Parse(value)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" {
		return nil
	}
	if i := strings.LastIndexByte(value, '@'); i >= 0 {
		value = "…" + value[i:] // drop what may be a password
	}
	return fmt.Errorf("%s=%s: it must be a URL, such as http://collector:4318 or https://collector:4318", variable, value)
}

// On reports whether spans are exported.
func (t *Traces) On() bool {
	_, off := t.provider.(noop.TracerProvider)
	return !off
}

// Tracer returns the tracer of the server's own spans.
func (t *Traces) Tracer() trace.Tracer { return t.provider.Tracer("github.com/firn-id/firn/cmd/firn") }

// Handler returns h with a span for every request, as part of the trace that the request names.
// Requests of probes and scrapers have no span.
func (t *Traces) Handler(h http.Handler) http.Handler {
	if !t.On() {
		return h
	}
	return otelhttp.NewHandler(h, "http",
		otelhttp.WithTracerProvider(t.provider),
		otelhttp.WithMeterProvider(metrics.NewMeterProvider()),
		otelhttp.WithPropagators(inHeaders),
		otelhttp.WithFilter(func(r *http.Request) bool {
			return r.URL.Path != "/livez" && r.URL.Path != "/readyz" && r.URL.Path != "/metrics"
		}),
	)
}

// Stop exports the remaining spans and ends the export.
func (t *Traces) Stop(ctx context.Context) error { return t.stop(ctx) }

// Call begins the span of a call of gRPC, as part of the trace that its header names; end ends it. A method is
// SERVICE/NAME.
func (t *Traces) Call(ctx context.Context, method string, header func(name string) string) (_ context.Context, end func(error)) {
	service, name, _ := strings.Cut(method, "/")
	from := propagation.MapCarrier{}
	for _, field := range inHeaders.Fields() {
		from[field] = header(field)
	}
	ctx, span := t.Tracer().Start(inHeaders.Extract(ctx, from), method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", service), attribute.String("rpc.method", name)))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}
