package client

import (
	"context"
	"errors"
	"time"
)

// A question is what is asked of one server after another until one answers.
type question struct {
	namespace string
	first     *server // asked first, if it is there, whatever it answered last; may be nil
	// ask asks one server. Its error is an *[Error] or the cause of ctx.
	ask func(ctx context.Context, one *server) error
	// note is told of every pass that brought nothing.
	note func(error)
}

// persist passes over the servers until one answers, the error lasts, there is no
// use in waiting until the given monotonic time, or ctx ends.
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

// pass asks each server that is there once. An error that lasts counts only if no
// other server answers: settings reach servers one after another. If none is
// there, changed is closed once one is.
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
			return nil, err // to ask others would be to get around it, or of no use
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

// attempt asks one server, and leaves it if it is not there. Others is how many
// there are to ask, this one among them.
func (c *Client) attempt(ctx context.Context, q question, one *server, others int) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause // nothing would be sent, and nothing learnt about the server
	}
	limit := c.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok && others > 1 {
		// A caller in a hurry shall reach a second server. A deadline is one of the
		// system's clock, whatever Config.Time is.
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
		// Others are told of it who wait for the server, and their contexts go on.
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
