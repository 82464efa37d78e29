package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
)

// An outage records whether a server or the store is down. The zero value is up.
type outage struct {
	mu      sync.Mutex
	changes int           // odd while it is down
	up      chan struct{} // closed when callers may continue; nil: they may
}

func (a *outage) begins() { a.change(1) }
func (a *outage) ends()   { a.change(0) }

func (a *outage) change(to int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changes%2 == to {
		panic("a mistake in this test: an outage begins or ends twice")
	}
	a.changes++
	if to == 1 {
		a.up = make(chan struct{})
	} else if a.up != nil {
		close(a.up)
	}
}

// eases lets callers continue before the end of the outage: calls from before may still fail.
func (a *outage) eases() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.up)
	a.up = nil
}

// now returns a value for since.
func (a *outage) now() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changes
}

// since reports whether it was down then or at any time since.
func (a *outage) since(then int) bool { return then%2 == 1 || a.now() != then }

// wait waits until callers may continue, or ctx ends.
func (a *outage) wait(ctx context.Context) {
	a.mu.Lock()
	up := a.up
	a.mu.Unlock()
	if up == nil {
		return
	}
	select {
	case <-up:
	case <-ctx.Done():
	}
}

// A kind holds the ids that all callers of a namespace received.
type kind struct {
	namespace string
	strict    bool
	set       idset.Set
	greatest  atomic.Int64 // of all received ids
}

// add records received ids and checks them. Floor was the greatest received id when they were
// requested: ids of a strict kind must be greater.
func (k *kind) add(floor int64, ids []firn.ID) error {
	last := ids[len(ids)-1]
	if k.set.Add(ids) > 0 {
		return fmt.Errorf("duplicates among %d", ids)
	}
	if !k.strict {
		return nil
	}
	for i, id := range ids {
		if int64(id) <= floor || i > 0 && id <= ids[i-1] {
			return fmt.Errorf("%d, but a caller had received %d before they were requested", ids, floor)
		}
	}
	for {
		was := k.greatest.Load()
		if int64(last) <= was || k.greatest.CompareAndSwap(was, int64(last)) {
			return nil
		}
	}
}

// A conn takes a few ids per call.
type conn struct {
	take  func(ctx context.Context) ([]firn.ID, error)
	close func()
}

// A caller takes ids, one call after the other.
type caller struct {
	t              *testing.T
	name           string
	kind           *kind
	at             *member // nil: the Go client
	store          *outage
	connect        func(namespace string) (conn, error)
	each           time.Duration
	served, failed atomic.Int64
}

// run calls until ctx ends, with a new connection after each error. An error is allowed if the
// server was down during the call, or, for a sequence, the store. Callers of the Go client must
// see no error.
func (c *caller) run(ctx context.Context) {
	tick := time.NewTicker(c.each)
	defer tick.Stop()
	for ctx.Err() == nil {
		conn, err := c.connect(c.kind.namespace)
		if err != nil {
			c.t.Errorf("%s: %v", c.name, err)
			return
		}
		err = c.call(ctx, conn, tick.C)
		conn.close()
		switch {
		case err != nil:
			c.t.Errorf("%s: %s: %v", c.name, c.kind.namespace, err)
			return
		case ctx.Err() != nil:
			return
		}
		c.failed.Add(1)
		c.at.wait(ctx)
		c.store.wait(ctx)
	}
}

// call calls until there is an error. It returns an error that is not allowed.
func (c *caller) call(ctx context.Context, conn conn, tick <-chan time.Time) error {
	for ctx.Err() == nil {
		<-tick
		server, store := 0, c.store.now()
		if c.at != nil {
			server = c.at.now()
		}
		floor := c.kind.greatest.Load()
		ids, err := conn.take(ctx)
		if err == nil {
			if err := c.kind.add(floor, ids); err != nil {
				return err
			}
			c.served.Add(1)
			continue
		}
		if c.at != nil && (c.at.since(server) || c.kind.strict && c.store.since(store)) {
			return nil
		}
		if ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// few is how many ids direct callers take per call.
const few = 3

// protocols maps the protocols of a server to functions that connect.
func protocols(s *served) iter.Seq2[string, func(namespace string) (conn, error)] {
	return maps.All(map[string]func(string) (conn, error){
		"HTTP": func(namespace string) (conn, error) { return overHTTP(s.address, namespace), nil },
		"RESP": func(namespace string) (conn, error) { return overRESP(s.resp, namespace), nil },
		"gRPC": func(namespace string) (conn, error) { return overGRPC(s.address, namespace) },
	})
}

func overHTTP(address, namespace string) conn {
	transport := &http.Transport{}
	return conn{
		take: func(ctx context.Context) ([]firn.ID, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/v1/ids/%s?count=%d", address, namespace, few), nil)
			if err != nil {
				return nil, err
			}
			req.Header.Set("Accept", "text/plain")
			answer, err := transport.RoundTrip(req)
			if err != nil {
				return nil, err
			}
			defer func() { _ = answer.Body.Close() }() // the body is read to its end
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != http.StatusOK {
				return nil, fmt.Errorf("%s: %s, %w", answer.Status, body, err)
			}
			return parse(strings.Fields(string(body)))
		},
		close: transport.CloseIdleConnections,
	}
}

func parse(texts []string) ([]firn.ID, error) {
	ids := make([]firn.ID, len(texts))
	for i, text := range texts {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		ids[i] = firn.ID(n)
	}
	return ids, checkFew(ids)
}

func checkFew(ids []firn.ID) error {
	if len(ids) != few {
		return fmt.Errorf("%d ids, want %d", len(ids), few)
	}
	return nil
}

func overRESP(address, namespace string) conn {
	c := redis.NewClient(&redis.Options{
		Addr: address, PoolSize: 1, MaxRetries: -1, DialerRetries: 1, ReadTimeout: time.Minute, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return conn{
		take: func(ctx context.Context) ([]firn.ID, error) {
			numbers, err := c.Do(ctx, "FIRN.NEXT", namespace, "COUNT", few).Int64Slice()
			if err != nil {
				return nil, err
			}
			ids := make([]firn.ID, len(numbers))
			for i, n := range numbers {
				ids[i] = firn.ID(n)
			}
			return ids, checkFew(ids)
		},
		close: func() { _ = c.Close() }, // no request is open
	}
}

func overGRPC(address, namespace string) (conn, error) {
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return conn{}, err
	}
	service := firnv1.NewIDServiceClient(c)
	return conn{
		take: func(ctx context.Context) ([]firn.ID, error) {
			count := int32(few)
			answer, err := service.Generate(ctx, &firnv1.GenerateRequest{Namespace: namespace, Count: &count, Form: firnv1.Form_FORM_LIST})
			if err != nil {
				return nil, err
			}
			ids := make([]firn.ID, len(answer.GetIds()))
			for i, id := range answer.GetIds() {
				ids[i] = firn.ID(id)
			}
			return ids, checkFew(ids)
		},
		close: func() { _ = c.Close() }, // no request is open
	}, nil
}

// clientOf takes one id per call from the client's buffer, or for a sequence from a server.
func clientOf(ids *client.Namespace[firn.ID], strict bool) func(string) (conn, error) {
	return func(string) (conn, error) {
		return conn{close: func() {}, take: func(ctx context.Context) ([]firn.ID, error) {
			if strict {
				return ids.Fetch(ctx, 1)
			}
			id, err := ids.Next(ctx)
			return []firn.ID{id}, err
		}}, nil
	}
}
