package client

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// A question goes to one server after another until one answers.
type question struct {
	namespace string
	first     *server // asked first if it has not been left; may be nil
	// ask asks one server. Its error is an *[Error] or the cause of ctx.
	ask func(ctx context.Context, one *server) error
	// failed is called after every pass over the servers that brought nothing.
	failed func(error)
}

// persist passes over the servers until one answers, the error lasts, a rate limit lasts past the given
// monotonic time, or ctx ends.
func (s *servers) persist(ctx context.Context, q question, until time.Duration) error {
	for try := 1; ; try++ {
		changed, err := s.pass(ctx, q)
		if err == nil || lasts(err) {
			return err
		}
		cause := context.Cause(ctx)
		if cause == nil || !errors.Is(err, cause) {
			q.failed(err)
		}
		if cause != nil {
			return cause
		}
		if changed != nil {
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			continue
		}
		d := s.backoff(try, err)
		if errors.Is(err, ErrLimited) && s.cfg.Time.Monotonic()+d > until {
			return err
		}
		if err := s.cfg.Time.Sleep(ctx, d); err != nil {
			return err
		}
	}
}

// pass asks each present server once. A lasting error counts only if no other server answers: settings
// reach servers one after another. If no server is present, changed is closed once one is.
func (s *servers) pass(ctx context.Context, q question) (changed <-chan struct{}, err error) {
	list, changed, err := s.present(q.namespace, q.first)
	if list == nil {
		return changed, err
	}
	var lasting error
	var errs several
	for i, one := range list {
		err := s.attempt(ctx, q, one, len(list)-i)
		switch {
		case err == nil:
			return nil, nil
		case context.Cause(ctx) != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, ErrLimited), errors.Is(err, ErrRequest):
			return nil, err // asking others would evade the limit, or would not help
		case lasts(err):
			lasting = err
		default:
			errs = append(errs, err)
		}
	}
	return nil, cmp.Or(lasting, error(errs))
}

// attempt asks one server, and leaves it if it is away. Others is how many servers are left to ask.
func (s *servers) attempt(ctx context.Context, q question, one *server, others int) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause // no request would be sent: that says nothing about the server
	}
	limit := s.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok && others > 1 {
		// A caller with a short deadline must still reach a second server. A deadline is on the
		// system's clock, whatever Config.Time is.
		limit = min(limit, max(time.Until(deadline)/2, time.Millisecond))
	}
	asking, cancel := context.WithTimeoutCause(ctx, limit, noAnswer(limit))
	defer cancel()
	start := s.cfg.Time.Monotonic()
	err := q.ask(asking, one)
	var e *Error
	away := errors.As(err, &e) && e.away()
	took := s.cfg.Time.Monotonic() - start
	early := asking.Err() != nil && took < s.cfg.Timeout/4
	if away && context.Cause(ctx) != nil {
		// This error also goes to callers whose contexts have not ended.
		err = &Error{Server: one.address, Err: noAnswer(took.Round(time.Millisecond))}
	}
	s.note(one, q.namespace, err, !away)
	switch {
	case away && early:
		s.doubt(one)
	case away:
		s.leave(one, err)
	case err != nil && !errors.Is(err, ErrLimited) && !errors.Is(err, ErrRequest):
		s.refused(one, q.namespace, err)
	}
	return err
}
