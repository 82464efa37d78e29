package registrar

import (
	"sync"
	"time"
)

// warnEvery is how often warnings are logged. Clients cause them, as fast as they send requests.
const warnEvery = time.Second

// warnings counts those that were not logged.
type warnings struct {
	mu      sync.Mutex
	next    time.Duration // monotonic
	omitted int
}

// warn logs a warning, at most one in a second.
func (r *Registrar) warn(text string, fields ...any) {
	now := r.cfg.Time.Monotonic()
	r.warned.mu.Lock()
	omitted, early := r.warned.omitted, now < r.warned.next
	if early {
		r.warned.omitted++
	} else {
		r.warned.next, r.warned.omitted = now+warnEvery, 0
	}
	r.warned.mu.Unlock()
	if early {
		r.cfg.Log.Debug(text, fields...)
		return
	}
	r.cfg.Log.Warn(text, append(fields, "omitted", omitted)...)
}
