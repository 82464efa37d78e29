package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
)

const grpcTarget = "write grpc://HOST:PORT or grpc://HOST:PORT/NAMESPACE (grpcs:// for TLS), ?stream=true for one stream a caller, ?form=list for ids one by one"

const (
	// maxConnections bounds the connections of a benchmark: one carries many callers.
	maxConnections = 4
	// maxStreams is how many streams a server has at most.
	maxStreams = 1000
)

// A grpcLoad asks a server for ids over gRPC.
type grpcLoad struct {
	namespace string
	stream    bool
	form      firnv1.Form
	clients   []firnv1.IDServiceClient
	next      atomic.Uint32
	streams   chan grpc.ServerStreamingClient[firnv1.GenerateResponse] // those that nobody reads now
	answers   sync.Pool                                                // of *firnv1.GenerateResponse
}

// benchGRPC asks a server for ids over gRPC.
func benchGRPC(ctx context.Context, target string, l load, r *report) (err error) {
	u, err := url.Parse(target)
	if err != nil || (u.Scheme != "grpc" && u.Scheme != "grpcs") || u.Host == "" {
		return usage(firn.NewSyntaxError("target", target, grpcTarget))
	}
	g := &grpcLoad{namespace: strings.Trim(u.Path, "/"), form: firnv1.Form_FORM_RUNS}
	if g.namespace == "" {
		g.namespace = "bench"
	}
	for key, values := range u.Query() {
		switch {
		case key == "stream" && values[0] == "true":
			g.stream = true
		case key == "form" && values[0] == "list":
			g.form = firnv1.Form_FORM_LIST
		default:
			return usage(firn.NewSyntaxError("target", target, grpcTarget))
		}
	}
	if g.stream && l.callers > maxStreams {
		return usage(firn.NewRangeError("--callers with ?stream=true", int64(l.callers), 1, maxStreams, ""))
	}
	secure := insecure.NewCredentials()
	if u.Scheme == "grpcs" {
		secure = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	}
	for range min(l.callers, maxConnections) {
		conn, err := grpc.NewClient(u.Host, grpc.WithTransportCredentials(secure))
		if err != nil {
			return err
		}
		defer func() { err = closeBody(conn, err) }()
		g.clients = append(g.clients, firnv1.NewIDServiceClient(conn))
	}
	var (
		set     idset.Set
		mu      sync.Mutex
		samples []time.Duration
	)
	ask := g.once
	if g.stream {
		streaming, cancel := context.WithCancel(ctx) // outlives the callers' time, as in benchHTTP
		defer cancel()
		if err := g.open(streaming, l); err != nil {
			return err
		}
		ask = g.receive
	}
	fill := func(ctx context.Context, ids []firn.ID) (int, error) {
		start := time.Now()
		n, err := ask(context.WithoutCancel(ctx), ids)
		took := time.Since(start)
		mu.Lock()
		if len(samples) < maxSamples {
			samples = append(samples, took)
		}
		mu.Unlock()
		return n, err
	}
	ids, took, err := drive(ctx, l, fill, func(ids []firn.ID) {
		if l.verify {
			set.Add(ids)
		}
	})
	r.finish(&set, ids, took)
	if len(samples) > 0 {
		slices.Sort(samples)
		r.Median, r.P99 = samples[len(samples)/2], samples[len(samples)*99/100]
	}
	return err
}

func (g *grpcLoad) client() firnv1.IDServiceClient {
	return g.clients[int(g.next.Add(1))%len(g.clients)]
}

// once asks for len(ids) ids in a request of their own.
func (g *grpcLoad) once(ctx context.Context, ids []firn.ID) (int, error) {
	count := int32(len(ids))
	answer, err := g.client().Generate(ctx, &firnv1.GenerateRequest{Namespace: g.namespace, Count: &count, Form: g.form})
	if err != nil {
		return 0, err
	}
	return expand(answer, ids)
}

// open opens a stream for every caller.
func (g *grpcLoad) open(ctx context.Context, l load) error {
	g.streams = make(chan grpc.ServerStreamingClient[firnv1.GenerateResponse], l.callers)
	batch := int32(l.batch)
	for range l.callers {
		stream, err := g.client().GenerateStream(ctx, &firnv1.GenerateStreamRequest{Namespace: g.namespace, Batch: &batch, Form: g.form})
		if err != nil {
			return err
		}
		g.streams <- stream
	}
	return nil
}

// receive takes the next message of a stream.
func (g *grpcLoad) receive(_ context.Context, ids []firn.ID) (int, error) {
	stream := <-g.streams // there are as many as callers
	defer func() { g.streams <- stream }()
	answer, ok := g.answers.Get().(*firnv1.GenerateResponse)
	if !ok {
		answer = new(firnv1.GenerateResponse)
	}
	defer g.answers.Put(answer)
	if err := stream.RecvMsg(answer); err != nil {
		return 0, fmt.Errorf("stream of ids: %w", err)
	}
	return expand(answer, ids)
}

// expand writes the ids of an answer to ids, which they must fill.
func expand(answer *firnv1.GenerateResponse, ids []firn.ID) (n int, err error) {
	for _, run := range answer.GetRuns() {
		id := firn.ID(run.GetFirst())
		for range run.GetCount() {
			if n == len(ids) {
				return n, fmt.Errorf("more than the %d ids asked for", n)
			}
			ids[n] = id
			id += firn.ID(run.GetStride())
			n++
		}
	}
	if n+len(answer.GetIds()) > len(ids) {
		return n, fmt.Errorf("more than the %d ids asked for", len(ids))
	}
	for _, id := range answer.GetIds() {
		ids[n] = firn.ID(id)
		n++
	}
	if len(answer.GetTexts()) > 0 {
		return n, fmt.Errorf("the ids of this namespace are texts, as %q: measure it over HTTP", answer.GetTexts()[0])
	}
	if n < len(ids) {
		return n, fmt.Errorf("%d ids, not the %d asked for", n, len(ids))
	}
	return n, nil
}
