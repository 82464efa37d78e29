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

// ShareName is the name of CosId's default id generator.
const ShareName = "__share__"

// ErrUnknownName is the error of an Issue for a name without ids.
var ErrUnknownName = errors.New("unknown name")

// ErrNoSegment is the error of a Segment for a name of something else.
var ErrNoSegment = errors.New("no segment")

// A Denied is the error of an Allow or an Issue that refuses a request.
type Denied struct {
	// Status is 401, 403 or 429; anything else counts as 403.
	Status int
	// Reason is sent to the client.
	Reason string
	// RetryAfter, if it is not 0, is sent with 429.
	RetryAfter time.Duration
}

func (e *Denied) Error() string { return e.Reason }

// Config is the configuration of a [Handler].
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
	// Segment returns the least id of the segment that is served under that name, or an
	// error that is [ErrNoSegment] if the name belongs to something else: a second counter,
	// or the bare numbers of ids that are shown in another form, would repeat ids. Default:
	// all names are segments, from 1.
	Segment func(name string) (least firn.ID, err error)
	// Take is called before a range of so many ids is handed out of a segment, after Allow.
	// It returns an error, such as *[Denied] with 429, if the client must wait. Done is
	// called with whether the range was handed out. Default: no limit.
	Take func(r *http.Request, name string, ids int64) (done func(handedOut bool), err error)
	// Observe, if not nil, is called after each request with its operation, "machines",
	// "segments", "ids" or "other", and its status. The status is 400 for every client's
	// fault, also where the answer has another one. Many goroutines call it.
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
