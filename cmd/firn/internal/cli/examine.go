package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	// storeProbes is the number of reads whose median is the latency.
	storeProbes = 9
	// slowRoundTrip is a round trip with which a claim takes noticeably long.
	slowRoundTrip = 250 * time.Millisecond
	// clockTolerance is the default tolerance of a lease. Beyond clockNear, doctor advises to check the clock.
	clockTolerance = 10 * time.Second
	clockNear      = time.Second
	// probeKey is read to measure the latency. It is never written.
	probeKey = "firn/doctor"
)

// examineStore measures how long a read takes, compares the store's clock with this machine's, and asks the store
// about its server. firn doctor prints the findings, and a server logs them at start. An error means that the store
// could not be asked.
func examineStore(ctx context.Context, s store.Store) ([]store.Finding, error) {
	latency, err := examineRoundTrip(ctx, s)
	if err != nil {
		return nil, err
	}
	findings := []store.Finding{latency}
	clock, err := examineOffset(ctx, s)
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

func examineRoundTrip(ctx context.Context, s store.Store) (store.Finding, error) {
	took := make([]time.Duration, storeProbes)
	for i := range took {
		begun := time.Now()
		if _, err := s.Get(ctx, probeKey); err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.Finding{}, err
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	median := took[storeProbes/2]
	f := store.Finding{Subject: "latency", Says: fmt.Sprintf("a read takes %v (median of %d)", median.Round(time.Microsecond), storeProbes)}
	if median > slowRoundTrip {
		f.Verdict, f.Advice = store.Doubtful, "use a store that is nearer, or windows far longer than this"
	}
	return f, nil
}

func examineOffset(ctx context.Context, s store.Store) (store.Finding, error) {
	f := store.Finding{Subject: "clock"}
	clock, ok := s.(store.Clock)
	if !ok {
		embedded, ok := s.(store.Embedded)
		if ok && embedded.Embedded() {
			f.Says = "the store is on this machine and uses its clock"
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
	case off.Abs() > clockTolerance:
		f.Verdict, f.Advice = store.Bad, fmt.Sprintf("set the clock right: beyond %v no worker is granted", clockTolerance)
	case off.Abs() > clockNear:
		f.Verdict, f.Advice = store.Doubtful, fmt.Sprintf("see that the clock is kept right: beyond %v no worker is granted", clockTolerance)
	}
	return f, nil
}
