package issuing

import (
	"log/slog"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

const (
	// internalInterval is how often an internal error is logged: clients repeat their requests.
	internalInterval = 10 * time.Second
	// maxInternal bounds the different ones that are logged in an interval.
	maxInternal = 20
)

// internalErrors logs errors that are faults of Firn, of what is in the store, or of the configuration. Their clients only learn that the log
// has the details.
type internalErrors struct {
	to    *slog.Logger
	clock func() time.Duration

	mu      sync.Mutex
	since   time.Duration // when the interval began
	logged  map[string]bool
	omitted int // since the latest record
}

func (e *internalErrors) log(namespace string, p Protocol, f *failure.Failure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.clock(); e.logged == nil || now-e.since >= internalInterval {
		e.since, e.logged = now, map[string]bool{}
	}
	text := namespace + " " + f.LogValue().String()
	if e.logged[text] || len(e.logged) >= maxInternal {
		e.omitted++
		return
	}
	e.logged[text] = true
	says := "internal error"
	if f.Code == failure.Mismatch {
		says = "the store has something else under this name than the configuration says"
	}
	e.to.Error(says, "protocol", p.String(), "namespace", namespace, "error", f, "omitted", e.omitted)
	e.omitted = 0
}
