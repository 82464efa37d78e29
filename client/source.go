package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/firn-id/firn"
)

const (
	// maxBatch is the most ids that one request asks for: a server's default limit. If a server allows
	// fewer, the client asks it for fewer.
	maxBatch = 100_000
	// maxSkips bounds the requests in a row that skip ids of a segment; maxGap bounds these ids.
	maxSkips = 10
	maxGap   = 100_000_000
)

// A source gets the ids of one namespace. Fill fills its buffer.
type source[T firn.ID | string] struct {
	name    string
	form    form[T]
	buffer  Buffer // the buffer's settings
	servers *servers

	// Only Fill uses these, one call at a time.
	batch int     // ids to ask for at once
	began bool    // it has received ids, up to last
	last  T       // the greatest id received, if the ids grow
	from  *server // the server of the latest ids

	dropped  atomic.Int64
	readable atomic.Bool // see fetch

	mu   sync.Mutex // guards all below
	kind kind
	err  error // of the latest pass over the servers, nil if it brought ids
}

// A kind is the kind of a namespace, as a server reports it.
type kind struct {
	known bool   // no need to ask again
	name  string // "" if not known
	grows bool   // its ids grow, with one server
	ranks bool   // its ids come from ranges, so taking ids skips a range
}

// Fill fills the front of dst with ids of one answer. Its errors last: it retries the others itself.
func (s *source[T]) Fill(ctx context.Context, dst []T) (int, error) {
	count, err := s.fill(ctx, dst)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return 0, cause
	}
	s.failed(err)
	if err != nil {
		return 0, lastingError{err}
	}
	return count, nil
}

// A lastingError is an error of a source on its way through the buffer.
type lastingError struct{ error }

func (e lastingError) Unwrap() error { return e.error }

func (s *source[T]) fill(ctx context.Context, dst []T) (count int, err error) {
	k, err := s.learn(ctx)
	if err != nil {
		return 0, err
	}
	q := question{namespace: s.name, failed: s.failed}
	if k.ranks {
		q.first = s.from // each server has its own ranges: a change may skip ids
	}
	q.ask = func(ctx context.Context, one *server) (err error) {
		if count, err = s.fillFrom(ctx, one, dst, k); err == nil {
			s.from = one
		}
		return err
	}
	if err := s.servers.persist(ctx, q, math.MaxInt64); err != nil {
		return 0, err
	}
	return count, nil
}

// fillFrom gets ids from one server and drops those that are not above the ones before. So a goroutine
// never sees ids go back: the buffer keeps the order in which ids are filled in.
func (s *source[T]) fillFrom(ctx context.Context, one *server, dst []T, k kind) (int, error) {
	for skips := 0; ; skips++ {
		got, err := s.requestSome(ctx, one, dst)
		if err != nil || !k.grows || s.buffer.AnyOrder {
			return got, err
		}
		latest := dst[got-1]
		kept := s.above(dst[:got])
		s.dropped.Add(int64(got - kept))
		if kept > 0 {
			return kept, nil
		}
		gap := s.form.above(latest, s.last)
		if !k.ranks || skips == maxSkips || gap < 0 || gap > maxGap {
			// If ids carry their time, the server's ids will soon be greater.
			return 0, &Error{Server: one.address, Err: fmt.Errorf("%w: %v is not above %v, which this client received before (Buffer.AnyOrder accepts them)", errBehind, latest, s.last)}
		}
		if gap > 0 {
			got, err = s.requestSome(ctx, one, make([]T, min(gap, int64(s.batch))))
			if err != nil {
				return 0, err
			}
			s.dropped.Add(int64(got))
		}
	}
}

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

// requestSome asks one server for as many ids as fit, or as it gives at once.
func (s *source[T]) requestSome(ctx context.Context, one *server, dst []T) (int, error) {
	for {
		count := min(len(dst), s.batch)
		err := s.request(ctx, one, dst[:count])
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

// request asks one server for as many ids as dst holds. Every request has a URL of its own, so that a cache that
// ignores methods and headers does not answer it with ids that it has given out already. The answer repeats what
// differs: one that a proxy sends twice, or a cache that ignores the query too, is of another request.
func (s *source[T]) request(ctx context.Context, one *server, dst []T) error {
	once := rand.Text()
	return s.servers.wire.exchange(ctx, one.address, exchange{
		namespace: s.name, count: len(dst),
		method: http.MethodPost, path: "/v1/ids/" + s.name + "?count=" + strconv.Itoa(len(dst)) + "&once=" + once,
		once:   once,
		accept: "text/plain", most: len(dst) * maxLine,
		read: func(body []byte) error { return s.form.fill(dst, body) },
	})
}

// The kinds that matter here; all others are buffered as they come.
var (
	// inOrder promise that each id is greater than all issued before it, anywhere.
	inOrder = []string{"sequence", "number"}
	growing = []string{"snowflake", "segment"}
	// numeric are numbers, unless they have a prefix.
	numeric = []string{"snowflake", "segment", "sequence"}
)

// learn returns the kind if it may be buffered, and asks for it if it is not known.
func (s *source[T]) learn(ctx context.Context) (kind, error) {
	s.mu.Lock()
	k := s.kind
	s.mu.Unlock()
	if k.known {
		return k, nil
	}
	k, err := s.askKind(ctx, s.describe)
	if errors.Is(err, ErrUnknownNamespace) {
		k, err = s.askKind(ctx, s.create)
	}
	if err != nil {
		return kind{}, err
	}
	if slices.Contains(inOrder, k.name) && !s.buffer.AnyKind {
		// Not remembered: the kind is asked again, in case the namespace changes.
		return kind{}, fmt.Errorf("%w: %s promises that each id is greater than all issued before, which a buffer would break; "+
			"use Fetch, or set Buffer.AnyKind if that order does not matter", ErrKind, k.name)
	}
	s.mu.Lock()
	s.kind = k
	s.mu.Unlock()
	return k, nil
}

// A description is what a server says about a namespace.
type description struct {
	Kind   string          `json:"kind"`
	Prefix string          `json:"prefix"`
	Veil   json.RawMessage `json:"veil"`

	hidden bool // the token may not read it
}

// describe asks one server about the namespace.
func (s *source[T]) describe(ctx context.Context, one *server) (d description, err error) {
	err = s.servers.wire.exchange(ctx, one.address, exchange{
		namespace: s.name, method: http.MethodGet, path: "/v1/namespaces/" + s.name, accept: "application/json", most: maxMessage,
		read: func(body []byte) error {
			if err := json.Unmarshal(body, &d); err != nil || d.Kind == "" {
				return fmt.Errorf("%w: it does not give the kind of %q: %s", errAnswer, s.name, shown(string(body)))
			}
			return nil
		},
	})
	switch {
	case errors.Is(err, ErrDenied) && s.buffer.AnyKind:
		return description{hidden: true}, nil
	case errors.Is(err, ErrDenied):
		err = fmt.Errorf("read its kind: %w; set Config.Token to a token that may use it", err)
	}
	return d, err
}

// create has one server make a namespace that no server knows, as some do on first use, and describe it. The id that it
// gives is not issued: while the kind is not known, it may be one that must not be buffered.
func (s *source[T]) create(ctx context.Context, one *server) (description, error) {
	if err := s.request(ctx, one, make([]T, 1)); err != nil {
		return description{}, err
	}
	d, err := s.describe(ctx, one)
	if errors.Is(err, ErrUnknownNamespace) { // perhaps its address leads to several: ask again
		err = &Error{Server: one.address, Status: http.StatusOK, Err: fmt.Errorf("%w: it gives ids of %q, and does not know it", errAnswer, s.name)}
	}
	return d, err
}

// askKind learns the kind from the first server that describes the namespace.
func (s *source[T]) askKind(ctx context.Context, describe func(context.Context, *server) (description, error)) (kind, error) {
	var described description
	err := s.servers.persist(ctx, question{
		namespace: s.name,
		failed:    s.failed,
		ask: func(ctx context.Context, one *server) (err error) {
			described, err = describe(ctx, one)
			return err
		},
	}, math.MaxInt64)
	switch {
	case err != nil:
		return kind{}, err
	case described.hidden:
		return kind{known: true}, nil
	}
	if err := s.reads(described); err != nil {
		return kind{}, err
	}
	veiled := !slices.Contains([]string{"", `""`, "null", "false"}, string(described.Veil))
	return kind{
		known: true, name: described.Kind,
		grows: s.form.numbers && slices.Contains(growing, described.Kind) && !veiled,
		ranks: s.form.numbers && described.Kind == "segment" && !veiled,
	}, nil
}

// reads returns an error if the ids of a namespace are texts, and numbers are wanted.
func (s *source[T]) reads(d description) error {
	if s.form.numbers && !d.hidden && (d.Prefix != "" || !slices.Contains(numeric, d.Kind)) {
		return fmt.Errorf("%w: ids of kind %s, or with a prefix, are texts; use Client.Texts", ErrKind, d.Kind)
	}
	return nil
}

// fetch is request, and first sees, once, that no ids are used up that cannot be read.
func (s *source[T]) fetch(ctx context.Context, one *server, dst []T) error {
	if !s.form.numbers || s.readable.Load() {
		return s.request(ctx, one, dst)
	}
	d, err := s.describe(ctx, one)
	switch {
	case err == nil:
		if err := s.reads(d); err != nil {
			return err
		}
		s.readable.Store(true)
	case errors.Is(err, ErrDenied), errors.Is(err, ErrRequest): // the token, or a proxy, allows requests for ids alone
		s.readable.Store(true)
	case errors.Is(err, ErrUnknownNamespace), errors.Is(err, errAnswer): // the request may make it, or says what is wrong
	default:
		return err
	}
	return s.request(ctx, one, dst)
}

// failed records the error of the latest pass over the servers; nil if it brought ids.
func (s *source[T]) failed(err error) {
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
}

// latest returns the kind, "" if it is not known, and the error of the latest pass.
func (s *source[T]) latest() (kind string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kind.name, s.err
}
