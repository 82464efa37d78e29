package issuing

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

func TestAPoolIsDoubtfulWhenLessThanATenthIsLeft(t *testing.T) {
	for _, test := range []struct {
		workers, held int64
		want          store.Verdict
	}{
		{1, 0, store.Good},
		{1, 1, store.Bad},
		{10, 9, store.Good},
		{11, 10, store.Doubtful},
		{20, 18, store.Good},
		{20, 19, store.Doubtful},
		{1024, 921, store.Good},
		{1024, 922, store.Doubtful},
		{math.MaxInt64/2 + 1, 0, store.Good},
		{math.MaxInt64/2 + 1, 1, store.Good},
	} {
		pool := Pool{Workers: test.workers, Slots: make([]Slot, test.held)}
		for i := range pool.Slots {
			pool.Slots[i].Until = pool.Clock.Add(1)
		}
		if got := workersLeft(pool).Verdict; got != test.want {
			t.Errorf("%d of %d: %v, not %v", test.held, test.workers, got, test.want)
		}
	}
}

func TestAPoolWhoseClaimsBeginFarAheadIsBad(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for from, want := range map[time.Time]int{{}: 0, now.Add(-time.Hour): 0, now.Add(20 * time.Second): 0, now.Add(time.Hour): 1} {
		found := claimsAhead(Pool{Pool: "shop", Clock: now, From: from})
		if len(found) != want {
			t.Errorf("from %v: %+v", from, found)
			continue
		}
		if want > 0 && (found[0].Verdict != store.Bad || !strings.Contains(found[0].Says, "2026-11-20T13:00:00Z") || !strings.Contains(found[0].Advice, "firn/shop/pool")) {
			t.Errorf("%+v", found)
		}
	}
}

// A readOnly store refuses to be read, as a replica does, and can be examined.
type readOnly struct{ store.Store }

func (r readOnly) Traits() store.Traits { return store.Traits{Clock: r, Examine: r.examine} }

func (readOnly) Get(context.Context, string) (store.Entry, error) {
	return store.Entry{}, errors.New("it is a replica")
}

func (readOnly) Now(context.Context) (time.Time, error) { return time.Time{}, errors.New("no clock") }

func (readOnly) examine(context.Context) ([]store.Finding, error) {
	return []store.Finding{{Subject: "role", Verdict: store.Bad, Says: "name the primary"}}, errors.New("no more")
}

func TestAQuestionThatFailsIsAFindingBesideTheOthers(t *testing.T) {
	want := []store.Finding{
		{Subject: "latency", Verdict: store.Bad, Says: "it is a replica"},
		{Subject: "clock", Verdict: store.Bad, Says: "no clock"},
		{Subject: "role", Verdict: store.Bad, Says: "name the primary"},
		{Subject: "server", Verdict: store.Bad, Says: "no more"},
	}
	if got := ExamineStore(t.Context(), readOnly{}); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestAFindingGivesTheHintOfItsErrorAsAdvice(t *testing.T) {
	for _, hint := range []string{"check the password", "run as one that may:\nCREATE TABLE t;\nGRANT SELECT ON t TO app;"} {
		f := Fails("store", &store.CallError{Store: "sqlstore", Op: "open", Key: "t", Err: store.ErrRefused, Hint: hint})
		if f.Says != `sqlstore: open "t": refused` || f.Advice != hint {
			t.Errorf("%q, %q", f.Says, f.Advice)
		}
	}
}
