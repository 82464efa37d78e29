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
	// maxBatch is how many ids a request asks for at most: what a server allows
	// by default. One that allows fewer is asked for fewer.
	maxBatch = 100_000
	// maxSkips bounds the requests in a row that skip ids of a segment, and
	// maxGap how many ids it is worth to skip in the end.
	maxSkips = 10
	maxGap   = 100_000_000
)

// A source fills a namespace's buffer. Its errors last; it tries again itself what
// is worth it. One call is made at a time.
type source[T firn.ID | string] struct {
	n     *Namespace[T]
	batch int     // ids to ask for at once
	began bool    // ids have been had, up to last
	last  T       // where they grow
	from  *server // had them last
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
		q.first = s.from // each server has ranges of its own: a change may skip ids
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
			return 0, err // what it brought is not issued
		}
	}
	return count, nil
}

// ask has ids of one server, and drops those that are not above the ones before.
// That a goroutine never sees ids go back rests on it: the buffer keeps the order
// in which ids are filled in.
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
			// Where ids carry their time the server's will be greater soon.
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

// errBehind says that a server's ids are below those of another.
var errBehind = errors.New("ids of this server go back and were dropped")

// above keeps what is above all before, and returns how much that is.
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
