package issuing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
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

// ExamineStore measures how long a read takes, compares the store's clock with this machine's, and asks the store
// about its server. firn doctor prints the findings, and a server logs them at start. A question that fails is a
// finding too, and does not prevent the others: an error alone would not tell what is wrong with the server.
func ExamineStore(ctx context.Context, s store.Store) []store.Finding {
	return append(examineAccess(ctx, s), examineServer(ctx, s)...)
}

func examineAccess(ctx context.Context, s store.Store) []store.Finding {
	return []store.Finding{examineRoundTrip(ctx, s), examineOffset(ctx, s)}
}

// examineServer asks whether the server of a store keeps what it confirms.
func examineServer(ctx context.Context, s store.Store) (findings []store.Finding) {
	examine := s.Traits().Examine
	if examine == nil {
		return nil
	}
	findings, err := examine(ctx)
	if err != nil {
		findings = append(findings, Fails("server", err))
	}
	return findings
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("no answer within %v", answerTimeout))
}

// Fails is the finding of a question that got an error. The way out that the store knows is the advice.
func Fails(subject string, err error) store.Finding {
	f := store.Finding{Subject: subject, Verdict: store.Bad, Says: err.Error()}
	if call, ok := errors.AsType[*store.CallError](err); ok && call.Hint != "" {
		f.Says, f.Advice = strings.NewReplacer(" ("+call.Hint+")", "", "; "+call.Hint, "").Replace(f.Says), call.Hint
	}
	return f
}

// failsIn is Fails for a write that ends with ctx, of which the error of its call only repeats the end.
func failsIn(ctx context.Context, subject string, err error) store.Finding {
	f := Fails(subject, err)
	call, ok := errors.AsType[*store.CallError](err)
	if ctx.Err() == nil || ok && !errors.Is(call.Err, context.DeadlineExceeded) {
		return f
	}
	f.Says = context.Cause(ctx).Error()
	if f.Advice == "" {
		f.Advice = "see whether the standbys or replicas that a write waits for are up and keep up, and who locks what it writes"
	}
	return f
}

// ExamineWrites makes the writes that a server makes, over a key that nothing reads: what an account, a read-only
// server or a missing command prevents, no list of settings can tell. Two, since the first may create the key.
func ExamineWrites(ctx context.Context, s store.Store) store.Finding {
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
			return failsIn(ctx, f.Subject, err)
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
			return Fails(f.Subject, err)
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
	clock := s.Traits().Clock
	if clock == nil {
		if s.Traits().Embedded {
			f.Says = "the store is on this machine and uses its clock"
			return f
		}
		f.Says = "the store has none to compare with: the slots of others are taken instead"
		return f
	}
	before := time.Now()
	there, err := clock.Now(ctx)
	if err != nil {
		return Fails(f.Subject, err)
	}
	took := time.Since(before)
	off := before.Add(took / 2).Sub(there)
	side := "ahead of"
	if off < 0 {
		side = "behind"
	}
	f.Says = fmt.Sprintf("%v %s the store's, give or take %v", off.Abs().Round(time.Millisecond), side, (took / 2).Round(time.Microsecond))
	switch {
	case off.Abs() > clockTolerance:
		f.Verdict, f.Advice = store.Bad, fmt.Sprintf("correct the one that is wrong: beyond %v no worker is granted", clockTolerance)
	case off.Abs() > clockNear:
		f.Verdict, f.Advice = store.Doubtful, fmt.Sprintf("see that the clock is kept right: beyond %v no worker is granted", clockTolerance)
	}
	return f
}

// ExaminePool examines a pool. Whether a server can join it, [Examine] says.
func ExaminePool(ctx context.Context, s store.Store, name string) []store.Finding {
	found, _ := examinePool(ctx, s, name)
	return found
}

// examinePool also returns when the pool was opened, if newcomers waited then.
func examinePool(ctx context.Context, s store.Store, name string) (found []store.Finding, opened time.Time) {
	pool, err := ReadPool(ctx, s, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, opened
	case err != nil:
		f := Fails("pool", err)
		if errors.Is(err, store.ErrForeign) {
			f.Advice = cmp.Or(f.Advice, "name another pool, or remove what another program wrote in its place")
		}
		return []store.Finding{f}, opened
	}
	return slices.Concat([]store.Finding{workersLeft(pool)}, closedPool(pool), claimsAhead(pool)), pool.opened
}

// closedPool reports a pool with holders that one of them, or a newcomer, has closed.
func closedPool(p Pool) []store.Finding {
	if p.Open || !slices.ContainsFunc(p.Slots, func(s Slot) bool { return s.Until.After(p.Clock) }) {
		return nil
	}
	return []store.Finding{{
		Subject: "pool", Verdict: store.Doubtful, Says: p.Pool + ": it is closed, as its store may have forgotten something; the next newcomer waits, and opens it",
		Advice: "if the store was wiped, restarted or put back, counters may begin again: before the next id of a segment, sequence or number see whether theirs are still there, and raise those that are not (docs/backup.md)",
	}}
}

// farAhead is longer than the claims of a pool normally begin ahead of the clock after the pool was opened.
const farAhead = 30 * time.Second

// claimsAhead reports a pool whose claims begin far ahead, because the clocks of the store and of the
// process that opened it were wrong together.
func claimsAhead(p Pool) []store.Finding {
	if p.From.Sub(p.Clock) < farAhead {
		return nil
	}
	return []store.Finding{{
		Subject: "pool", Verdict: store.Bad,
		Says: fmt.Sprintf("%s: all claims begin at %s, as the store's clock was ahead when the pool was opened", p.Pool, p.From.UTC().Add(time.Second-1).Format(time.RFC3339)),
		Advice: fmt.Sprintf("use another pool; or, if you are sure that no id of this one has a time later than now, delete its record (the key firn/%s/pool): Firn makes a new one",
			p.Pool),
	}}
}

// workersLeft says how many workers of a pool are left.
func workersLeft(p Pool) store.Finding {
	var live int64
	for _, s := range p.Slots {
		if s.Until.After(p.Clock) {
			live++
		}
	}
	are := "are"
	if live == 1 {
		are = "is"
	}
	f := store.Finding{Subject: "pool", Says: fmt.Sprintf("%s: %s of %s workers %s held", p.Pool, decode.Grouped(fmt.Sprint(live)), decode.Grouped(fmt.Sprint(p.Workers)), are)}
	if p.Strict != "" {
		f.Says += "; it is strict: a claim waits " + p.Strict
	}
	switch left := p.Workers - live; {
	case left == 0:
		f.Verdict, f.Advice = store.Bad, "newcomers are refused until a fence passes: use another pool, of a layout with more workers, or shorter windows. "+
			"If a holder has certainly ended, firn workers release N --holder-is-gone frees its worker after 10 s"
	case left < (p.Workers+9)/10: // fewer than a tenth
		f.Verdict, f.Advice = store.Doubtful, "fewer than a tenth are left: use another pool, of a layout with more workers, or shorter windows"
	}
	return f
}
