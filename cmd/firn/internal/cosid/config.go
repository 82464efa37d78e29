package cosid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/cosid/registrar"
	"github.com/firn-id/firn/store"
)

// ShareName is the name of the id generator that CosId uses where none is named.
const ShareName = "__share__"

// ErrUnknownName is what an Issue answers for a name that it issues no ids of.
var ErrUnknownName = errors.New("unknown name")

// ErrNoSegment is what a Segment answers for the name of something else.
var ErrNoSegment = errors.New("no segment")

// A Denied says that a request is not served, by an Allow or an Issue.
type Denied struct {
	// Status is 401, 403 or 429; anything else counts as 403.
	Status int
	// Reason is told to the client.
	Reason string
	// RetryAfter, if it is not 0, is told with 429.
	RetryAfter time.Duration
}

func (e *Denied) Error() string { return e.Reason }

// Config is what [Handler] works with.
type Config struct {
	// Store keeps machine numbers and segments. Required.
	Store store.Store
	// Time gives the time of machine numbers where the store does not, and is waited on.
	// Default: [firn.SystemTime].
	Time firn.TimeSource
	// Tolerance is how far the clocks of store and server may be apart. Default: 10s.
	Tolerance time.Duration
	// MaxMachines is how many numbers a machine namespace may have in use, whatever the
	// machine bits, up to 1,048,576. Default: 65,536.
	MaxMachines int
	// MaxStep is how many ids a client may take at once, up to 2^40. Default: 2^40.
	// (CosId's chain of segments multiplies the step that is set as demand grows.)
	MaxStep int64
	// Timeout bounds the work for one request. Default: 10s.
	Timeout time.Duration

	// Issue returns the next id of a name as text, for /ids. Its errors: [ErrUnknownName],
	// *[Denied]; any other is a failure. Without it there are no /ids.
	Issue func(ctx context.Context, name string) (string, error)
	// Share is the name that Issue is given for /ids and /ids/as-string, which name none.
	// Default: [ShareName].
	Share string

	// Allow returns an error for what the client may not do; *[Denied] says why. The name is
	// that of the machine namespace, the segment or the ids as Firn has it, see [FirnName].
	// Default: everything is allowed.
	Allow func(r *http.Request, name string) error
	// Segment returns the least id of a segment that is served to everybody by that name, or an error
	// that is [ErrNoSegment] where the name is that of something else: a second counter, or
	// the bare numbers of ids that are shown in another form, would repeat ids. Default: all names are
	// segments, from 1.
	Segment func(name string) (least firn.ID, err error)
	// Take is called before a range of so many ids is handed out of a segment that Allow has
	// let the client use, and returns an error, as *[Denied] with 429, if that is too many now.
	// Done is called when it is known whether it was. Default: there is no limit.
	Take func(r *http.Request, name string, ids int64) (done func(handedOut bool), err error)
	// Observe is told of each request served: "machines", "segments", "ids" or, of one that
	// came to none of these, "other"; and the status, which is 400 of all that was the client's fault and is
	// answered otherwise. It is called by many goroutines. Default: nobody is.
	Observe func(operation string, status int, took time.Duration)
	// Log receives what an operator should know. Default: nothing.
	Log *slog.Logger
}

const (
	mostStep       = 1 << 40
	defaultTimeout = 10 * time.Second
)

func (c *Config) check() error {
	var errs []error
	if c.Time == nil {
		c.Time = firn.SystemTime()
	}
	if c.MaxStep == 0 {
		c.MaxStep = mostStep
	}
	if c.MaxStep < 1 || c.MaxStep > mostStep {
		errs = append(errs, firn.NewRangeError("greatest step", c.MaxStep, 1, mostStep, ""))
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Timeout < 0 {
		errs = append(errs, &firn.RangeError{What: "timeout", Value: c.Timeout.String(), Min: "1ns", Max: "any"})
	}
	if c.Share == "" {
		c.Share = ShareName
	}
	if c.Allow == nil {
		c.Allow = func(*http.Request, string) error { return nil }
	}
	if c.Segment == nil {
		c.Segment = func(string) (firn.ID, error) { return 0, nil }
	}
	if c.Take == nil {
		c.Take = func(*http.Request, string, int64) (func(bool), error) { return func(bool) {}, nil }
	}
	if c.Observe == nil {
		c.Observe = func(string, int, time.Duration) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}

// machines returns the registrar of a checked configuration.
func (c *Config) machines() (*registrar.Registrar, error) {
	r, err := registrar.New(registrar.Config{
		Store: c.Store, Time: c.Time, Tolerance: c.Tolerance, MaxMachines: c.MaxMachines, Log: c.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("cosid: %w", err)
	}
	return r, nil
}
