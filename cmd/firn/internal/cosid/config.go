package cosid

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// shareName is the name of CosId's default id generator, which /ids without a name means.
const shareName = "__share__"

// Config is the configuration of a [Handler]. All fields are required, except Time and Log. The errors of its
// functions are those that package failure knows; clients get their statuses, but 400 instead of 404, as CosId answers.
type Config struct {
	// Store keeps machine numbers and segments.
	Store store.Store
	// Memory is what the process knows of the store's counters, which namespaces may use too.
	Memory *register.Memory
	// Time is the clock if the store has no clock, and times waits. Default: [firn.SystemTime].
	Time firn.TimeSource

	// Issue returns the next id of a name as text, for /ids, to a caller that Allow has returned. Number
	// asks for a 64-bit number: for a name without numbers it returns an error, and the name loses no id.
	Issue func(ctx context.Context, caller *access.Caller, name string, number bool) (string, error)
	// Allow returns the caller of a request, or an error if it may not use the name. The name
	// is Firn's name of a machine namespace, a segment or a namespace of ids, see [FirnName].
	Allow func(r *http.Request, name string) (*access.Caller, error)
	// Segment returns the settings of the segment with that name, or an error if the name is not a segment's: a second
	// counter beside another kind of namespace, or bare numbers of a namespace with another text form, would repeat ids.
	Segment func(name string) (Segment, error)
	// Create is called before a name that the store does not have is made, and returns an error if
	// the client may not make it. Undo is called if another request made it meanwhile.
	Create func(caller *access.Caller) (undo func(), err error)
	// Skip is called before a counter begins so far above its least id that only known clients may do so:
	// it uses up the ids below. It returns an error if the client may not.
	Skip func(caller *access.Caller) error
	// Take is called before a range of ids is taken from a segment. It returns an error if the client
	// must wait. Done is called after, with the error if no range was issued.
	Take func(caller *access.Caller, name string, ids int64) (done func(err error), err error)
	// Observe is called after each request with its operation, "machines",
	// "segments", "ids" or "other", and its status. The status of a bad request is 400 even
	// if the client is sent another one. Several goroutines call it.
	Observe func(operation string, status int, took time.Duration)
	// Log receives messages for operators. Default: they are discarded.
	Log *slog.Logger
}

// A Segment has the settings of a name.
type Segment struct {
	Least     firn.ID // the least id
	MaxStep   int64   // how many ids a client may take at once
	MustExist bool    // as that of [segment.Config]
}

const (
	mostStep = 1 << 40
	// timeout bounds the work for one request.
	timeout = 10 * time.Second
	// DefaultMaxStep is the greatest step of names that the configuration does not declare, as of segments. CosId's
	// segment chain multiplies its step as demand grows, 10 by default. With steps of 2^40 a client would use a name up
	// with 8 million requests.
	DefaultMaxStep = 1_000_000
)
