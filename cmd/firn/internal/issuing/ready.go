package issuing

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// Ready returns nil while the service, as far as it knows, can issue ids of every named
// namespace or, without names, of any namespace, once all pools are joined (but those with a
// fixed worker). It does not wait for the store: after a failure of the store it probes it in
// the background for later calls. Errors are a
// [failure.Failure], not_ready, shutting_down or unknown_namespace, with text that is safe for everyone.
//
// Why any: usually all servers share one store. If a sequence that lost its store made a
// server not ready, all servers would leave their balancer at once, and ids that need no
// store would be unavailable too. Why all pools: in a rolling update each server that is ready lets an earlier one end.
func (s *Service) Ready(names ...string) error {
	if s.draining.Load() {
		return readyError("shutting_down", "the server is shutting down")
	}
	now := s.now.Load()
	if len(names) > 0 {
		return now.readyFor(names)
	}
	return s.readiness(now).err
}

// readinessLasts is how long one answer serves all who ask for the readiness of all namespaces: it costs milliseconds if
// there are thousands, and every watch of health asks once a second.
const readinessLasts = 100 * time.Millisecond

// A readiness is that of all namespaces.
type readiness struct {
	of      *snapshot
	at      time.Time
	err     error  // why none can issue
	lacking string // which cannot and why
}

// readiness returns the latest readiness of a snapshot, at most readinessLasts old.
func (s *Service) readiness(now *snapshot) *readiness {
	s.judging.Lock()
	defer s.judging.Unlock()
	if r := s.judged; r == nil || r.of != now || time.Since(r.at) >= readinessLasts {
		s.judged = now.judge()
	}
	return s.judged
}

func (s *snapshot) judge() *readiness {
	r := &readiness{of: s, at: time.Now()}
	cannot := s.unable(maps.Keys(s.namespaces))
	r.lacking = listed(cannot)
	if len(s.namespaces) == 0 && s.dynamic != nil {
		if err := (leased{s.dynamic}).able(); err != nil {
			r.err = notReady(failure.Public(err) + sayWhy)
		}
	}
	if len(cannot) == len(s.namespaces) && len(cannot) > 0 {
		r.err = notReady("no namespace can issue: " + r.lacking + sayWhy)
	}
	for _, p := range s.pools {
		if _, err := p.held(); err != nil && !p.pinned { // a fixed worker may be another server's for as long as that lives
			r.err = notReady("the server is starting: " + r.lacking + sayWhy)
		}
	}
	return r
}

// sayWhy ends the public text, which has no errors: they may contain the store's address.
const sayWhy = ": the log and the state of the namespaces say why"

func (s *snapshot) readyFor(names []string) error {
	for _, name := range names {
		if s.namespaces[name] != nil {
			continue
		}
		if s.dynamic == nil {
			return undeclared(name)
		}
		if err := settings.CheckName(name); err != nil { // no request can make it
			return err
		}
		if err := (leased{s.dynamic}).able(); err != nil { // namespaces would be made from this pool
			return notReady(failure.Public(err) + sayWhy)
		}
	}
	if cannot := s.unable(slices.Values(names)); len(cannot) > 0 {
		return notReady(listed(cannot) + sayWhy)
	}
	return nil
}

// Lacking says which namespaces cannot issue and why, in public text; "" if all can.
func (s *Service) Lacking() string { return s.readiness(s.now.Load()).lacking }

// unable returns, by name, why namespaces cannot issue. Those that can are left out.
func (s *snapshot) unable(names func(func(string) bool)) map[string]error {
	asked := map[base]error{} // namespaces share pools
	cannot := map[string]error{}
	for name := range names {
		ns := s.namespaces[name]
		if ns == nil {
			continue
		}
		err, known := asked[ns.base]
		if !known {
			err = ns.base.able()
			asked[ns.base] = err
		}
		switch {
		case err != nil && ns.cipher != nil: // anyone may ask
			cannot[name] = failure.Veiled(err)
		case err != nil:
			cannot[name] = err
		}
	}
	return cannot
}

// maxListed bounds how many namespaces an answer names.
const maxListed = 20

// listed groups namespaces by reason: a, b: why; c: why.
func listed(cannot map[string]error) string {
	names := slices.Sorted(maps.Keys(cannot))
	rest := len(names) - maxListed
	names = names[:min(len(names), maxListed)]
	var reasons []string // in the order of their first namespace
	of := map[string][]string{}
	for _, name := range names {
		why := failure.Public(cannot[name])
		if of[why] == nil {
			reasons = append(reasons, why)
		}
		of[why] = append(of[why], name)
	}
	for i, why := range reasons {
		reasons[i] = strings.Join(of[why], ", ") + ": " + why
	}
	if rest > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(reasons, "; ")
}

func notReady(why string) error { return readyError("not_ready", why) }

// readyError has a code for clients: they return to a server that cannot issue ids of one
// namespace, since it has others, but not to one that shuts down.
func readyError(code, why string) error {
	return failure.New(http.StatusServiceUnavailable, code, "%s", why).After(time.Second)
}
