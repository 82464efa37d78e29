package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/firn-id/firn"
)

// A Client gets ids from several equal servers. Its methods may be called
// concurrently.
type Client struct {
	cfg     Config
	http    *http.Client
	own     *http.Transport // nil if the caller gave one
	servers *servers

	// life ends with the client. Only background work waits under it; callers do not.
	life context.Context
	end  context.CancelCauseFunc

	mu      sync.Mutex // guards all below; never held while waiting
	closed  bool
	calls   sync.WaitGroup // of Fetch
	probes  sync.WaitGroup
	numbers map[string]*Namespace[firn.ID]
	texts   map[string]*Namespace[string]
}

// New returns a client. It asks no server yet. The error names every impossible
// setting.
func New(cfg Config) (*Client, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, servers: newServers(cfg.Servers, cfg.Random),
		numbers: map[string]*Namespace[firn.ID]{}, texts: map[string]*Namespace[string]{},
	}
	c.life, c.end = context.WithCancelCause(context.Background())
	if cfg.HTTP != nil {
		given := *cfg.HTTP
		c.http = &given
	} else {
		c.own = &http.Transport{
			DialContext:           (&net.Dialer{Timeout: cfg.Timeout, KeepAlive: 15 * time.Second}).DialContext,
			TLSClientConfig:       cfg.TLS.Clone(),
			ForceAttemptHTTP2:     true,
			TLSHandshakeTimeout:   cfg.Timeout,
			ResponseHeaderTimeout: cfg.Timeout,
			MaxIdleConns:          maxServers * idleConnections,
			MaxIdleConnsPerHost:   idleConnections,
			IdleConnTimeout:       90 * time.Second,
		}
		c.http = &http.Client{Transport: c.own}
	}
	// Only the servers may see the token: do not follow redirects.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// idleConnections are kept to each server, for callers of Fetch.
const idleConnections = 64

// IDs returns the namespace of that name, whose ids are numbers: kinds snowflake,
// segment and sequence, without a prefix. It asks no server yet. Until Close, the
// same name gives the same Namespace; at most 10,000 are kept, of both types.
func (c *Client) IDs(name string) (*Namespace[firn.ID], error) {
	return open(c, c.numbers, name, numbers)
}

// Texts is IDs for namespaces of any kind: serial, number, uuid, objectid, ids
// with a prefix; and numbers, as text.
func (c *Client) Texts(name string) (*Namespace[string], error) {
	return open(c, c.texts, name, texts)
}

func open[T firn.ID | string](c *Client, all map[string]*Namespace[T], name string, f form[T]) (*Namespace[T], error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("client: %w", firn.ErrClosed)
	}
	if n := all[name]; n != nil {
		return n, nil
	}
	if have := len(c.numbers) + len(c.texts); have >= maxNamespaces {
		return nil, firn.NewRangeError("number of namespaces", int64(have)+1, 1, maxNamespaces, "of one client, all of which it keeps")
	}
	buffer, ok := c.cfg.Buffers[name]
	if !ok {
		buffer = c.cfg.Buffer
	}
	n := &Namespace[T]{client: c, name: name, form: f, buffer: buffer}
	all[name] = n
	return n, nil
}

// enter begins a call that Close ends and waits for. Leave ends it.
func (c *Client) enter(ctx context.Context) (calling context.Context, leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, fmt.Errorf("client: %w", firn.ErrClosed)
	}
	c.calls.Add(1)
	calling, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })
	return calling, func() {
		stop()
		cancel(nil)
		c.calls.Done()
	}, nil
}

// Close ends all requests and waits, which fail with [firn.ErrClosed], and drops
// the buffered ids: they become gaps. A call that begins after Close returns no id.
// Nothing of the client runs any more when Close returns. Its error is nil. It may be
// called twice, and concurrently.
func (c *Client) Close() error {
	c.end(firn.ErrClosed) // first, so that no server is blamed for a request cut off here
	c.mu.Lock()
	c.closed = true
	var group sync.WaitGroup
	for _, n := range c.numbers {
		group.Go(n.close)
	}
	for _, n := range c.texts {
		group.Go(n.close)
	}
	c.mu.Unlock()
	group.Wait()
	c.calls.Wait()
	c.probes.Wait() // after all that could begin one
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// observed is exchange, reported to the hooks.
func (c *Client) observed(ctx context.Context, one *server, namespace string, count int, x exchange) error {
	began := c.cfg.Time.Monotonic()
	err := c.exchange(ctx, one, x)
	if c.cfg.Hooks.Request != nil {
		c.cfg.Hooks.Request(Request{
			Server: one.address, Namespace: namespace, Count: count, Took: c.cfg.Time.Monotonic() - began, Err: err,
		})
	}
	return err
}
