package client

import (
	"context"
	"errors"
	"time"
)

// A question goes to one server after another until one answers.
type question struct {
	namespace string
	first     *server // asked first, if it is there, whatever it answered last; may be nil
	// ask asks one server. Its error is an *[Error] or the cause of ctx.
	ask func(ctx context.Context, one *server) error
	// note is called after every pass that brought nothing.
	note func(error)
}

// persist passes over the servers until one answers, the error lasts, waiting until
// the given monotonic time would not help, or ctx ends.
func (c *Client) persist(ctx context.Context, q question, until time.Duration) error {
	for try := 1; ; try++ {
		changed, err := c.pass(ctx, q)
		if err == nil || lasts(err) {
			return err
		}
		cause := context.Cause(ctx)
		if cause == nil || !errors.Is(err, cause) {
			q.note(err)
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
		d := c.backoff(try, err)
		if errors.Is(err, ErrLimited) && c.cfg.Time.Monotonic()+d > until {
			return err
		}
		if err := c.cfg.Time.Sleep(ctx, d); err != nil {
			return err
		}
	}
}

// pass asks each present server once. An error that lasts counts only if no other
// server answers: settings reach servers one after another. If no server is
// present, changed is closed once one is.
func (c *Client) pass(ctx context.Context, q question) (changed <-chan struct{}, err error) {
	list, changed, err := c.servers.present(q, c.cfg.Time.Monotonic())
	var lasting error
	var errs several
	for i, one := range list {
		err := c.attempt(ctx, q, one, len(list)-i)
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
	switch {
	case lasting != nil:
		return nil, lasting
	case list != nil:
		return nil, errs
	default:
		return changed, err
	}
}

// attempt asks one server, and leaves it if it is away. Others is how many servers
// there are to ask, including this one.
func (c *Client) attempt(ctx context.Context, q question, one *server, others int) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause // no request would be sent: that says nothing about the server
	}
	limit := c.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok && others > 1 {
		// A caller with a short deadline must still reach a second server. A deadline
		// is on the system's clock, whatever Config.Time is.
		limit = min(limit, max(time.Until(deadline)/2, time.Millisecond))
	}
	asking, cancel := context.WithTimeoutCause(ctx, limit, noAnswer(limit))
	defer cancel()
	start := c.cfg.Time.Monotonic()
	err := q.ask(asking, one)
	var e *Error
	away := errors.As(err, &e) && e.away()
	took := c.cfg.Time.Monotonic() - start
	early := asking.Err() != nil && took < c.cfg.Timeout/4
	if away && context.Cause(ctx) != nil {
		// This error also goes to callers that wait for the server and whose contexts have
		// not ended.
		err = &Error{Server: one.address, Err: noAnswer(took.Round(time.Millisecond))}
	}
	c.servers.note(one, q.namespace, err, !away)
	switch {
	case away && early:
		c.doubt(one)
	case away:
		c.leave(one, err)
	case err != nil && !errors.Is(err, ErrLimited) && !errors.Is(err, ErrRequest):
		c.refused(one, q.namespace, err)
	}
	return err
}
