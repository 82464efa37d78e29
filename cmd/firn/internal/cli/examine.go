package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

const (
	// storeProbes is the number of reads whose median is the latency.
	storeProbes = 9
	// slowRoundTrip is a round trip with which a claim takes noticeably long.
	slowRoundTrip = 250 * time.Millisecond
	// clockTolerance is the default tolerance of a lease. Beyond clockNear, doctor advises to check the clock.
	clockTolerance = 10 * time.Second
	clockNear      = time.Second
	// answerTimeout bounds the reads, and the writes, so that a store that hangs leaves time for the other questions.
	answerTimeout = 8 * time.Second
	// probeKey is read to measure the latency, and written by firn doctor.
	probeKey = "firn/doctor"
)

// examineStore measures how long a read takes, compares the store's clock with this machine's, and asks the store
// about its server. firn doctor prints the findings, and a server logs them at start. A question that fails is a
// finding too, and does not prevent the others: an error alone would not tell what is wrong with the server.
func examineStore(ctx context.Context, s store.Store) []store.Finding {
	findings := []store.Finding{examineRoundTrip(ctx, s), examineOffset(ctx, s)}
	if e, ok := s.(store.Examined); ok {
		of, err := e.Examine(ctx)
		findings = append(findings, of...)
		if err != nil {
			findings = append(findings, fails("server", err))
		}
	}
	return findings
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("no answer within %v", answerTimeout))
}

// fails is the finding of a question that got an error. The way out that the store knows is the advice.
func fails(subject string, err error) store.Finding {
	f := store.Finding{Subject: subject, Verdict: store.Bad, Says: err.Error()}
	if call, ok := errors.AsType[*store.CallError](err); ok && call.Hint != "" {
		f.Says, f.Advice = strings.Replace(f.Says, " ("+call.Hint+")", "", 1), call.Hint
	}
	return f
}

// examineWrites makes the writes that a server makes, over a key that nothing reads: what an account, a read-only
// server or a missing command prevents, no list of settings can tell. Two, since the first may create the key.
func examineWrites(ctx context.Context, s store.Store) store.Finding {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r := register.Register{Store: s, Key: probeKey, Time: firn.SystemTime(), Random: rand.Uint64}
	f := store.Finding{Subject: "write"}
	for range 2 {
		begun := time.Now()
		_, err := r.Update(ctx, func(store.Entry) ([]byte, error) {
			return register.Encode(map[string]time.Time{"examined": time.Now().UTC()})
		})
		if err != nil {
			return fails(f.Subject, err)
		}
		f.Says = fmt.Sprintf("a write takes %v and is confirmed", time.Since(begun).Round(time.Microsecond))
	}
	return f
}

func examineRoundTrip(ctx context.Context, s store.Store) store.Finding {
	ctx, cancel := bounded(ctx)
	defer cancel()
	f := store.Finding{Subject: "latency"}
	took := make([]time.Duration, storeProbes)
	for i := range took {
		begun := time.Now()
		if _, err := s.Get(ctx, probeKey); err != nil && !errors.Is(err, store.ErrNotFound) {
			return fails(f.Subject, err)
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	median := took[storeProbes/2]
	f.Says = fmt.Sprintf("a read takes %v (median of %d)", median.Round(time.Microsecond), storeProbes)
	if median > slowRoundTrip {
		f.Verdict, f.Advice = store.Doubtful, "use a store that is nearer, or windows far longer than this"
	}
	return f
}

func examineOffset(ctx context.Context, s store.Store) store.Finding {
	f := store.Finding{Subject: "clock"}
	clock, ok := s.(store.Clock)
	if !ok {
		embedded, ok := s.(store.Embedded)
		if ok && embedded.Embedded() {
			f.Says = "the store is on this machine and uses its clock"
			return f
		}
		f.Says = "the store has none to compare with: the slots of others are taken instead"
		return f
	}
	before := time.Now()
	there, err := clock.Now(ctx)
	if err != nil {
		return fails(f.Subject, err)
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
	return f
}
