package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/prefetch"
)

// A Namespace is a named source of ids on the servers, with a buffer here. Its
// methods may be called concurrently.
//
// The first call of Next, TryNext or Fill starts the buffer. From then on it is
// refilled, one request at a time, whenever a quarter of it is used up, until the
// client is closed.
type Namespace[T firn.ID | string] struct {
	buf    atomic.Pointer[prefetch.Buffer[T]] // nil until it is first asked for
	client *Client
	name   string
	form   form[T]
	buffer Buffer // its settings

	dropped atomic.Int64

	mu     sync.Mutex // guards all below; never held while waiting
	closed bool
	kind   kind
	err    error // of the latest pass over the servers, nil if it brought ids
}

// String returns the name.
func (n *Namespace[T]) String() string { return n.name }

// Next returns the next id. It returns a buffered id at once, even if ctx has
// ended. Otherwise it waits for the request that all callers share, as long as ctx
// and [Config.Wait] allow. If ctx ends first, and only then, the error matches its
// cause; if all servers had failed by then, it matches why, too. Otherwise it
// matches [ErrLimited] or [ErrUnavailable]. An error that lasts is returned as soon
// as a server says so: [ErrUnknownNamespace], [ErrDenied], [ErrRequest], [ErrKind].
// Other callers get it too for about a second; then the servers are asked again.
// After Close the error is [firn.ErrClosed].
func (n *Namespace[T]) Next(ctx context.Context) (T, error) {
	if b := n.buf.Load(); b != nil {
		if id, ok := b.TryNext(); ok {
			return id, nil
		}
	}
	var id [1]T
	_, err := n.fillSlowly(ctx, id[:])
	return id[0], err
}

// TryNext returns the next id if one is buffered; it never waits.
func (n *Namespace[T]) TryNext() (id T, ok bool) {
	b := n.buf.Load()
	if b == nil {
		var err error
		if b, err = n.start(); err != nil {
			return id, false
		}
	}
	return b.TryNext()
}

// Fill fills dst from the buffer, and waits as Next does if too few ids are
// buffered. It returns how many it has filled, and why not all.
func (n *Namespace[T]) Fill(ctx context.Context, dst []T) (int, error) {
	filled := 0
	if b := n.buf.Load(); b != nil {
		filled = b.TryFill(dst)
	}
	if filled == len(dst) {
		return filled, nil
	}
	more, err := n.fillSlowly(ctx, dst[filled:])
	return filled + more, err
}

// fillSlowly fills dst, which is not empty, waiting.
func (n *Namespace[T]) fillSlowly(ctx context.Context, dst []T) (int, error) {
	b, err := n.start()
	if err != nil {
		return 0, err
	}
	c := n.client
	began := c.cfg.Time.Monotonic()
	waiting, cancel := context.WithTimeoutCause(ctx, c.cfg.Wait, errWaited)
	filled, err := b.Fill(waiting, dst)
	cancel()
	err = n.explain(ctx, err)
	if c.cfg.Hooks.Waited != nil {
		c.cfg.Hooks.Waited(n.name, c.cfg.Time.Monotonic()-began, err)
	}
	return filled, err
}

// Fetch returns count ids that a server made after the call, bypassing the buffer:
// all from one answer, or an error. This is how ids of a sequence keep their promise.
// It goes from server to server until one answers, as long as ctx and [Config.Wait]
// allow. Errors are those of Next, and a *[firn.RangeError] for a count below 1. A
// count above what the servers give at once is [ErrRequest].
func (n *Namespace[T]) Fetch(ctx context.Context, count int) ([]T, error) {
	if count < 1 || count > maxFetch {
		return nil, firn.NewRangeError("number of ids", int64(count), 1, maxFetch, "")
	}
	ids := make([]T, count)
	if err := n.ask(ctx, ids); err != nil {
		return nil, err
	}
	return ids, nil
}

// maxFetch is the most that any server gives at once.
const maxFetch = 10_000_000

// errWaited is the cause of a wait that Config.Wait has ended.
var errWaited = errors.New("waited long enough")

// ask asks servers for ids, bypassing the buffer.
func (n *Namespace[T]) ask(ctx context.Context, dst []T) error {
	c := n.client
	calling, leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	waiting, cancel := context.WithTimeoutCause(calling, c.cfg.Wait, errWaited)
	defer cancel()
	var last error
	err = c.persist(waiting, question{
		namespace: n.name,
		note:      func(err error) { last = err },
		ask:       func(ctx context.Context, one *server) error { return n.request(ctx, one, dst) },
	}, c.cfg.Time.Monotonic()+c.cfg.Wait)
	if err != nil && context.Cause(calling) == nil && !errors.Is(err, errWaited) {
		return fmt.Errorf("client: ids of %q: %w", n.name, err)
	}
	return n.outcome(calling, err, last)
}

// request asks one server for as many ids as dst holds. Every request has a URL of its own: a cache
// that ignores methods and headers would otherwise answer it with ids it has already given out.
func (n *Namespace[T]) request(ctx context.Context, one *server, dst []T) error {
	return n.client.observed(ctx, one, n.name, len(dst), exchange{
		method: http.MethodPost, path: "/v1/ids/" + n.name + "?count=" + strconv.Itoa(len(dst)) + "&once=" + rand.Text(),
		accept: "text/plain", token: true, most: len(dst) * maxLine,
		read: func(body []byte) error { return n.form.fill(dst, body) },
	})
}

// explain makes the caller's error of an error of the buffer.
func (n *Namespace[T]) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	n.mu.Lock()
	last := n.err
	n.mu.Unlock()
	return n.outcome(ctx, err, last)
}

// outcome makes the caller's error. Ctx is the caller's own. Last says why the servers
// gave nothing when they were last asked; nil if they have not answered.
func (n *Namespace[T]) outcome(ctx context.Context, err, last error) error {
	cause := context.Cause(ctx)
	var lasting lastingError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, firn.ErrClosed) || errors.Is(cause, firn.ErrClosed):
		return fmt.Errorf("client: next id of %q: %w", n.name, firn.ErrClosed)
	case cause != nil && last != nil:
		return fmt.Errorf("client: next id of %q: %w, while the servers gave none: %w", n.name, cause, last)
	case cause != nil:
		return fmt.Errorf("client: next id of %q: %w", n.name, cause)
	case errors.As(err, &lasting):
		return fmt.Errorf("client: ids of %q: %w", n.name, lasting.error)
	case !errors.Is(err, errWaited):
		return fmt.Errorf("client: ids of %q: %w", n.name, err)
	case errors.Is(last, ErrLimited):
		return fmt.Errorf("client: ids of %q: %w", n.name, last)
	default:
		return &UnavailableError{Namespace: n.name, Waited: n.client.cfg.Wait, Err: last}
	}
}

// failed records the result of the latest pass over the servers.
func (n *Namespace[T]) failed(err error) {
	n.mu.Lock()
	n.err = err
	n.mu.Unlock()
}

// start returns the buffer, and makes it on the first call.
func (n *Namespace[T]) start() (*prefetch.Buffer[T], error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.buf.Load(); b != nil {
		return b, nil
	}
	if n.closed {
		return nil, fmt.Errorf("client: next id of %q: %w", n.name, firn.ErrClosed)
	}
	b, err := prefetch.New(prefetch.Config[T]{
		Source:  &source[T]{n: n, batch: maxBatch},
		MinSize: n.buffer.Min, Size: n.buffer.Max, Refill: n.buffer.Max * 3 / 4,
		Target: n.buffer.Target, MaxAge: n.buffer.MaxAge,
		Pause: pause, Time: n.client.cfg.Time, Random: n.client.cfg.Random,
	})
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	n.buf.Store(b)
	return b, nil
}

// pause is how long callers get an error that lasts before the servers are asked
// again.
const pause = time.Second

// close ends the buffer; no id is taken from it after close returns.
func (n *Namespace[T]) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	if b := n.buf.Load(); b != nil {
		_ = b.Close() // nil always
	}
}
