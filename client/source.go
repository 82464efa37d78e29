package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/firn-id/firn"
)

const (
	// maxBatch is the most ids that one request asks for: a server's default limit.
	// If a server allows fewer, the client asks it for fewer.
	maxBatch = 100_000
	// maxSkips bounds the requests in a row that skip ids of a segment; maxGap
	// bounds the ids that are worth skipping in total.
	maxSkips = 10
	maxGap   = 100_000_000
)

// A source fills a namespace's buffer. Its errors last; it retries the others itself.
// One call is made at a time.
type source[T firn.ID | string] struct {
	n     *Namespace[T]
	batch int     // ids to ask for at once
	began bool    // it has received ids, up to last
	last  T       // the greatest id received, if the ids grow
	from  *server // gave ids last
}

// Fill fills the front of dst with ids of one answer.
func (s *source[T]) Fill(ctx context.Context, dst []T) (int, error) {
	count, err := s.fill(ctx, dst)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return 0, cause
	}
	s.n.failed(err)
	if err != nil {
		return 0, lastingError{err}
	}
	return count, nil
}

// A lastingError is an error of a source on its way through the buffer.
type lastingError struct{ error }

func (e lastingError) Unwrap() error { return e.error }

func (s *source[T]) fill(ctx context.Context, dst []T) (count int, err error) {
	n := s.n
	k, err := n.learn(ctx, false)
	if err != nil {
		return 0, err
	}
	q := question{namespace: n.name, note: n.failed}
	if k.ranks {
		q.first = s.from // each server has its own ranges: a change may skip ids
	}
	q.ask = func(ctx context.Context, one *server) (err error) {
		if count, err = s.ask(ctx, one, dst, k); err == nil {
			s.from = one
		}
		return err
	}
	if err := n.client.persist(ctx, q, math.MaxInt64); err != nil {
		return 0, err
	}
	if !k.known { // the request may have made the namespace
		if _, err := n.learn(ctx, true); err != nil {
			return 0, err // the ids just received are not issued
		}
	}
	return count, nil
}

// ask gets ids from one server and drops those that are not above the ones before.
// This is why a goroutine never sees ids go back: the buffer keeps the order in which
// ids are filled in.
func (s *source[T]) ask(ctx context.Context, one *server, dst []T, k kind) (int, error) {
	for skips := 0; ; skips++ {
		got, err := s.request(ctx, one, dst)
		if err != nil || !k.grows || s.n.buffer.AnyOrder {
			return got, err
		}
		latest := dst[got-1]
		kept := s.above(dst[:got])
		s.n.dropped.Add(int64(got - kept))
		if kept > 0 {
			return kept, nil
		}
		gap := s.n.form.above(latest, s.last)
		if !k.ranks || skips == maxSkips || gap < 0 || gap > maxGap {
			// If ids carry their time, the server's ids will soon be greater.
			return 0, &Error{Server: one.address, Err: fmt.Errorf("%w: %v is not above %v, which was had here before (Buffer.AnyOrder takes them)", errBehind, latest, s.last)}
		}
		if gap > 0 {
			got, err = s.request(ctx, one, make([]T, min(gap, int64(s.batch))))
			if err != nil {
				return 0, err
			}
			s.n.dropped.Add(int64(got))
		}
	}
}

// errBehind: a server's ids are below those of another server.
var errBehind = errors.New("ids of this server go back and were dropped")

// above keeps the ids that are above all before them, and returns how many those are.
func (s *source[T]) above(ids []T) (kept int) {
	for _, id := range ids {
		if s.began && id <= s.last {
			continue
		}
		s.began, s.last = true, id
		ids[kept] = id
		kept++
	}
	return kept
}

// request asks one server for as many ids as fit, or as it gives at once.
func (s *source[T]) request(ctx context.Context, one *server, dst []T) (int, error) {
	for {
		count := min(len(dst), s.batch)
		err := s.n.request(ctx, one, dst[:count])
		var e *Error
		if errors.As(err, &e) && e.Status == http.StatusRequestEntityTooLarge && count > 1 {
			s.batch = count / 2
			continue
		}
		if err != nil {
			return 0, err
		}
		return count, nil
	}
}
