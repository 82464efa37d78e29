package issuing

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/store"
)

// Ready returns nil while the service can issue, as far as is known: ids of every
// namespace that is named, or of any without a name. It does not wait for the store;
// where that failed it is looked at in the background, so that a later call finds out.
// Errors: a [failure.Failure], not_ready, shutting_down or unknown_namespace, with words for everyone.
//
// Why any: one store serves all servers, as a rule. If a sequence without its store made
// a server not ready, all of them would leave their balancer at once, and take those ids
// along that are made without the store.
func (s *Service) Ready(names ...string) error {
	if s.draining.Load() {
		return unready("shutting_down", "the server is shutting down")
	}
	now := s.now.Load()
	if len(names) > 0 {
		return now.readyFor(names)
	}
	cannot := now.unable(maps.Keys(now.namespaces))
	if len(now.namespaces) == 0 && now.dynamic != nil {
		if err := (leased{now.dynamic}).able(); err != nil {
			return notReady(store.Public(err) + sayWhy)
		}
	}
	if len(cannot) < len(now.namespaces) || len(cannot) == 0 {
		return nil
	}
	return notReady("no namespace can issue: " + listed(cannot) + sayWhy)
}

// sayWhy ends the words for everyone: errors may have the address of the store.
const sayWhy = ": the log and the state of the namespaces say why"

func (s *snapshot) readyFor(names []string) error {
	for _, name := range names {
		if s.namespaces[name] != nil {
			continue
		}
		if s.dynamic == nil {
			return undeclared(name)
		}
		if err := (leased{s.dynamic}).able(); err != nil { // it would be made of that
			return notReady(store.Public(err) + sayWhy)
		}
	}
	if cannot := s.unable(slices.Values(names)); len(cannot) > 0 {
		return notReady(listed(cannot) + sayWhy)
	}
	return nil
}

// Lacking says which namespaces cannot issue, and why, in words for everyone; "" if all can.
func (s *Service) Lacking() string {
	now := s.now.Load()
	return listed(now.unable(maps.Keys(now.namespaces)))
}

// unable returns why some of the namespaces cannot issue, by name, without those that can.
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
		if err != nil {
			cannot[name] = err
		}
	}
	return cannot
}

// maxListed bounds how many namespaces are named in an answer.
const maxListed = 20

// listed writes namespaces with the reason that they have in common: a, b: why; c: why.
func listed(cannot map[string]error) string {
	names := slices.Sorted(maps.Keys(cannot))
	rest := len(names) - maxListed
	names = names[:min(len(names), maxListed)]
	var reasons []string // in the order of their first namespace
	of := map[string][]string{}
	for _, name := range names {
		why := store.Public(cannot[name])
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

func notReady(why string) error { return unready("not_ready", why) }

// unready says why by a code, too: a client returns to a server that cannot issue ids of one
// namespace, for what it has of others, and keeps away from one that ends.
func unready(code, why string) error {
	f := failure.New(http.StatusServiceUnavailable, code, "%s", why)
	f.Retry = time.Second
	return f
}
