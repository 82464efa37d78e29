package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Call begins the span of a call of gRPC, as part of the trace that its header names; end ends it. A method is
// SERVICE/NAME.
func (t *Traces) Call(ctx context.Context, method string, header func(name string) string) (_ context.Context, end func(error)) {
	from := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	service, name, _ := strings.Cut(method, "/")
	ctx, span := t.Tracer().Start(from.Extract(ctx, getter(header)), method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", service), attribute.String("rpc.method", name)))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// A getter is a header to read.
type getter func(name string) string

// Get implements [propagation.TextMapCarrier].
func (g getter) Get(name string) string { return g(strings.ToLower(name)) }

// Set implements [propagation.TextMapCarrier].
func (getter) Set(string, string) {}

// Keys implements [propagation.TextMapCarrier].
func (getter) Keys() []string { return nil }
