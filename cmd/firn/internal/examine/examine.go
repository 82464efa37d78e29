// Package examine looks for what is wrong with a store and the clock here, in
// the words that firn doctor prints and a server logs at start.
package examine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	// probes is how many round trips the latency is the median of.
	probes = 9
	// slow is a round trip beyond which a claim takes noticeably long.
	slow = 250 * time.Millisecond
	// tolerance is what a lease tolerates by default, and near when to say so.
	tolerance = 10 * time.Second
	near      = time.Second
	// probeKey is read to see how long that takes. Nobody writes it.
	probeKey = "firn/doctor"
)

// Store examines an open store: how long it takes, its clock against the one
// here, and what it says of its server. An error says that it cannot be asked.
func Store(ctx context.Context, s store.Store) ([]store.Finding, error) {
	latency, err := roundTrip(ctx, s)
	if err != nil {
		return nil, err
	}
	findings := []store.Finding{latency}
	clock, err := offset(ctx, s)
	if err != nil {
		return findings, err
	}
	findings = append(findings, clock)
	if e, ok := s.(store.Examined); ok {
		of, err := e.Examine(ctx)
		findings = append(findings, of...)
		if err != nil {
			return findings, err
		}
	}
	return findings, nil
}

func roundTrip(ctx context.Context, s store.Store) (store.Finding, error) {
	took := make([]time.Duration, probes)
	for i := range took {
		begun := time.Now()
		if _, err := s.Get(ctx, probeKey); err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.Finding{}, err
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	median := took[probes/2]
	f := store.Finding{Subject: "latency", Says: fmt.Sprintf("a read takes %v (median of %d)", median.Round(time.Microsecond), probes)}
	if median > slow {
		f.Verdict, f.Advice = store.Doubtful, "use a store that is nearer, or windows far longer than this"
	}
	return f, nil
}

func offset(ctx context.Context, s store.Store) (store.Finding, error) {
	f := store.Finding{Subject: "clock"}
	clock, ok := s.(store.Clock)
	if !ok {
		embedded, ok := s.(store.Embedded)
		if ok && embedded.Embedded() {
			f.Says = "the store is on this host and has no other clock"
			return f, nil
		}
		f.Says = "the store has none to compare with: the slots of others are taken instead"
		return f, nil
	}
	before := time.Now()
	there, err := clock.Now(ctx)
	if err != nil {
		return f, err
	}
	took := time.Since(before)
	off := before.Add(took / 2).Sub(there)
	f.Says = fmt.Sprintf("%v off the store's, give or take %v", off.Round(time.Millisecond), (took / 2).Round(time.Microsecond))
	switch {
	case off.Abs() > tolerance:
		f.Verdict, f.Advice = store.Bad, fmt.Sprintf("set the clock right: beyond %v no worker is granted", tolerance)
	case off.Abs() > near:
		f.Verdict, f.Advice = store.Doubtful, fmt.Sprintf("see that the clock is kept right: beyond %v no worker is granted", tolerance)
	}
	return f, nil
}
