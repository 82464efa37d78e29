package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/prefetch"
)

// A Namespace is a named source of ids on the servers, with a buffer in this process. Do not copy it. Its methods may
// be called concurrently. The first call of Next, TryNext or Fill starts the buffer. From then on it is
// refilled, one request at a time, whenever a quarter of it is used up, until the client is closed.
type Namespace[T firn.ID | string] struct {
	buf    atomic.Pointer[prefetch.Buffer[T]] // nil until the first call that needs it
	name   string
	cfg    *Config
	source *source[T]
	mu     sync.Mutex // held while the buffer is made
}

// String returns the name.
func (n *Namespace[T]) String() string { return n.name }

// Next returns the next id. It returns a buffered id at once, even if ctx has ended. Otherwise it waits
// for the request that all callers share, as long as ctx and [Config.Wait] allow. If ctx ends first,
// and only then, the error matches ctx.Err() and its cause; if all servers had failed by then, it also matches why.
// Otherwise it matches [ErrLimited] or [ErrUnavailable]. A lasting error is returned as soon as a
// server says so: [ErrUnknownNamespace], [ErrDenied], [ErrRequest], [ErrKind]. Other callers get it too
// for about a second; then the servers are asked again. After Close the error is [firn.ErrClosed].
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
	b, err := n.buffer()
	if err != nil {
		return id, false
	}
	return b.TryNext()
}

// Fill fills dst from the buffer, and waits as Next does if too few ids are buffered. It returns how
// many it has filled, and why not all.
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
	b, err := n.buffer()
	if err != nil {
		return 0, err
	}
	began := n.cfg.Time.Monotonic()
	waiting, cancel := context.WithTimeoutCause(ctx, n.cfg.Wait, errWaited)
	filled, err := b.Fill(waiting, dst)
	cancel()
	if err != nil {
		_, last := n.source.latest()
		err = n.explain(ctx, err, last)
	}
	if n.cfg.Hooks.Waited != nil {
		n.cfg.Hooks.Waited(n.name, n.cfg.Time.Monotonic()-began, err)
	}
	return filled, err
}

// Fetch returns count ids that a server made after the call, past the buffer: all from one answer, or
// an error. So ids of a sequence keep their promise. It asks server after server until one answers, as
// long as ctx and [Config.Wait] allow. Errors are those of Next, and a *[firn.RangeError] unless count
// is 1 to 10,000,000. If the servers give fewer at once, the error is [ErrRequest].
func (n *Namespace[T]) Fetch(ctx context.Context, count int) ([]T, error) {
	if count < 1 || count > maxFetch {
		return nil, firn.NewRangeError("number of ids", int64(count), 1, maxFetch, "")
	}
	calling, leave, err := n.source.servers.enter(ctx)
	if err != nil {
		return nil, n.explain(ctx, err, nil)
	}
	defer leave()
	waiting, cancel := context.WithTimeoutCause(calling, n.cfg.Wait, errWaited)
	defer cancel()
	ids := make([]T, count)
	var last error // of the latest pass over the servers
	if err := n.source.servers.persist(waiting, question{
		namespace: n.name,
		failed:    func(err error) { last = err },
		ask:       func(ctx context.Context, one *server) error { return n.source.fetch(ctx, one, ids) },
	}, n.cfg.Time.Monotonic()+n.cfg.Wait); err != nil {
		return nil, n.explain(ctx, err, last)
	}
	return ids, nil
}

// maxFetch is the most ids that any server gives at once.
const maxFetch = 10_000_000

// errWaited is the cause of a wait that Config.Wait has ended.
var errWaited = errors.New("waited long enough")

// explain makes the caller's error of err, which is not nil. The ctx is the caller's own. Last says why the
// servers gave nothing when they were last asked; nil if they have not answered.
func (n *Namespace[T]) explain(ctx context.Context, err, last error) error {
	did, cause := fmt.Sprintf("client: ids of %q", n.name), context.Cause(ctx)
	var lasting lastingError
	switch {
	case errors.Is(err, firn.ErrClosed) && !errors.Is(cause, firn.ErrClosed): // the caller's own cause may be that
		err = firn.ErrClosed
	case cause != nil && last != nil:
		return turns.Ended(ctx, did, fmt.Errorf("%w, while the servers gave none: %w", cause, last))
	case cause != nil:
		return turns.Ended(ctx, did, cause)
	case errors.As(err, &lasting):
		err = lasting.error
	case !errors.Is(err, errWaited):
	case errors.Is(last, ErrLimited):
		err = last
	case last == nil:
		err = fmt.Errorf("%w: no server has answered within %v", ErrUnavailable, n.cfg.Wait)
	default:
		err = fmt.Errorf("%w: no server gave ids within %v: %w", ErrUnavailable, n.cfg.Wait, last)
	}
	return fmt.Errorf("%s: %w", did, err)
}

// buffer returns the buffer, and makes it on the first call.
func (n *Namespace[T]) buffer() (*prefetch.Buffer[T], error) {
	if b := n.buf.Load(); b != nil {
		return b, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.buf.Load(); b != nil {
		return b, nil
	}
	if n.source.servers.life.Err() != nil {
		return nil, fmt.Errorf("client: ids of %q: %w", n.name, firn.ErrClosed)
	}
	settings := n.source.buffer
	b, err := prefetch.New(prefetch.Config[T]{
		Source:  n.source,
		MinSize: settings.Min, Size: settings.Max, Refill: settings.Max * 3 / 4,
		Target: settings.Target, MaxAge: settings.MaxAge,
		Pause: pause, Time: n.cfg.Time, Random: n.cfg.Random,
	})
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	n.buf.Store(b)
	return b, nil
}

// pause is how long callers get a lasting error before the servers are asked again.
const pause = time.Second

// A NamespaceState is a namespace and its buffer.
type NamespaceState struct {
	Namespace string
	Texts     bool          // of [Client.Texts]; false: of [Client.IDs], which may have the same name
	Kind      string        // as a server reported it, "" while not known
	Buffered  int           // ids in the buffer
	Size      int           // ids it should hold at the present demand, 0 before its first use
	Lasts     time.Duration // how long the buffered ids last at the recent demand, at most some 292 years
	Issued    int64         // ids taken out
	Fills     int64         // times it was filled, successful or not
	Waits     int64         // calls that found too few ids in the buffer
	Expired   int64         // ids dropped for their age
	Dropped   int64         // ids dropped for their order
	Err       error         // why the servers gave nothing when they were last asked, nil if they did
}

func (n *Namespace[T]) state() NamespaceState {
	s := NamespaceState{Namespace: n.name, Texts: !n.source.form.numbers, Dropped: n.source.dropped.Load()}
	s.Kind, s.Err = n.source.latest()
	if b := n.buf.Load(); b != nil {
		of := b.State()
		s.Buffered, s.Size, s.Lasts, s.Issued = of.Buffered, of.Size, of.Lasts, of.Issued
		s.Fills, s.Waits, s.Expired = of.Fills, of.Waits, of.Expired
	}
	return s
}

// close ends the buffer: it issues no id after close returns. The servers have ended: no call makes one.
func (n *Namespace[T]) close() {
	n.mu.Lock()
	b := n.buf.Load()
	n.mu.Unlock()
	if b != nil {
		_ = b.Close() // always nil
	}
}
