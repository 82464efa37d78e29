package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/firnv1"
)

const grpcForm = "write grpc://HOST:PORT or grpc://HOST:PORT/NAMESPACE (7072 without :PORT; grpcs:// for TLS), ?stream=true for one stream a caller, ?form=list for ids one by one"

const (
	// maxConnections bounds the connections of a benchmark. Several callers share one.
	maxConnections = 4
	// maxStreams is the server's limit of concurrent streams.
	maxStreams = 1000
	// grpcPort is the port of a target without one.
	grpcPort = "7072"
)

// A grpcLoad asks firn serve over gRPC.
type grpcLoad struct {
	namespace string
	form      firnv1.Form
	conns     []*grpc.ClientConn
	clients   []firnv1.IDServiceClient
	next      atomic.Uint32
	header    metadata.MD                                              // of every call
	end       context.CancelFunc                                       // of the streams
	streams   chan grpc.ServerStreamingClient[firnv1.GenerateResponse] // the idle ones; nil: no streams
	answers   sync.Pool                                                // of *firnv1.GenerateResponse
}

func grpcTarget(text string, l load) (_ target, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return target{}, usage(firn.NewSyntaxError("target", "…", grpcForm))
	}
	if l.pipeline != 0 || l.buffered {
		return target{}, usage(errors.New("--pipeline is for redis:// and --buffered for http://; over gRPC --batch asks for many ids at once"))
	}
	g := &grpcLoad{namespace: strings.Trim(u.Path, "/"), form: firnv1.Form_FORM_RUNS, end: func() {}}
	if g.namespace == "" {
		g.namespace = defaultNamespace
	}
	stream := false
	for key, values := range u.Query() {
		switch {
		case key == "stream" && values[0] == "true":
			stream = true
		case key == "form" && values[0] == "list":
			g.form = firnv1.Form_FORM_LIST
		default:
			return target{}, usage(firn.NewSyntaxError("target", text, grpcForm))
		}
	}
	if stream && l.callers > maxStreams {
		return target{}, usage(firn.NewRangeError("--callers with ?stream=true", int64(l.callers), 1, maxStreams, ""))
	}
	if stream && !l.rate.IsZero() {
		return target{}, usage(errors.New("--rate is for requests: a server fills a stream as fast as it is read"))
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), grpcPort)
	}
	token, err := readToken(l.tokenFile)
	if err != nil {
		return target{}, err
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if u.Scheme == "grpcs" {
		options[0] = grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if token != "" { // also without TLS: as with http://, the user has chosen grpc://
		g.header = metadata.Pairs("authorization", "Bearer "+token)
	}
	for range min(l.callers, maxConnections) {
		conn, err := grpc.NewClient(u.Host, options...)
		if err != nil {
			return target{}, errors.Join(err, g.close())
		}
		g.conns = append(g.conns, conn)
		g.clients = append(g.clients, firnv1.NewIDServiceClient(conn))
	}
	if stream {
		if err := g.open(l); err != nil {
			return target{}, errors.Join(err, g.close())
		}
	}
	return target{fill: g.fill, every: always, close: g.close}, nil
}

// fill requests ids. A request in flight when the time is over is finished, as over HTTP.
func (g *grpcLoad) fill(ctx context.Context, ids []firn.ID) (int, error) {
	if g.streams != nil {
		return g.receive(ids)
	}
	ctx = metadata.NewOutgoingContext(context.WithoutCancel(ctx), g.header)
	count := int32(len(ids))
	answer, err := g.client().Generate(ctx, &firnv1.GenerateRequest{Namespace: g.namespace, Count: &count, Form: g.form})
	if err != nil {
		return 0, err
	}
	return expand(answer, ids)
}

func (g *grpcLoad) close() error {
	g.end()
	var errs []error
	for _, conn := range g.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

func (g *grpcLoad) client() firnv1.IDServiceClient {
	return g.clients[int(g.next.Add(1))%len(g.clients)]
}

// open opens a stream for every caller.
func (g *grpcLoad) open(l load) error {
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(context.Background(), g.header))
	g.end = cancel
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
func (g *grpcLoad) receive(ids []firn.ID) (int, error) {
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
