package firn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// switchingTo returns a generator of worker 7 that takes another worker when the clock goes back.
func switchingTo(t *testing.T, to func(ctx context.Context, from firn.Tick) (firn.Grant, error)) (*firn.Generator, *firntest.Clock) {
	t.Helper()
	clock := firntest.NewClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	g, err := firn.New(7, firn.Config{Clock: firn.ClockWall, Time: clock, Start: firn.StartZero, Rollback: firn.Rollback{firn.SwitchWorker()}, Switch: to})
	if err != nil {
		t.Fatal(err)
	}
	clock.Pass(time.Second)
	return g, clock
}

func TestASwitchToTheWorkerInUseRepeatsNoTick(t *testing.T) {
	g, clock := switchingTo(t, func(_ context.Context, from firn.Tick) (firn.Grant, error) {
		return firn.Grant{Worker: 7, After: from - 1, Through: 1 << 40}, nil
	})
	for range 10 {
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Pass(time.Millisecond)
	}
	clock.Step(-8 * time.Millisecond)
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrClockBack) {
		t.Errorf("%d, %v", id, err)
	}
}

func TestAnEndedContextEndsACallWhoseFenceDoesNotMove(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	g, err := firn.NewLeased(firn.Config{AtFence: func(context.Context, *firn.FenceError) error {
		if calls++; calls == 3 {
			cancel()
		}
		return nil
	}}, firn.Grant{Worker: 1, After: -1, Through: 5})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Next(ctx); !errors.Is(err, context.Canceled) || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestStopEndsTheWaitForASwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		g, clock := switchingTo(t, func(context.Context, firn.Tick) (firn.Grant, error) {
			<-gate
			return firn.Grant{Worker: 8, After: -1, Through: 1 << 40}, nil
		})
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Step(-time.Minute)
		ended := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := g.Next(t.Context())
				ended <- err
			}()
		}
		synctest.Wait()
		g.Stop()
		synctest.Wait()
		if len(ended) != 1 { // the other one is in Config.Switch
			t.Errorf("%d calls have ended", len(ended))
		}
		close(gate)
		for range 2 {
			if err := <-ended; !errors.Is(err, firn.ErrClosed) {
				t.Error(err)
			}
		}
	})
}

func TestTextsThatAreNearlyRightAreRefused(t *testing.T) {
	l := firn.DefaultLayout()
	id, err := l.Compose(firn.Parts{Tick: 59_659_416_216, Worker: 3, Sequence: 4})
	if err != nil {
		t.Fatal(err)
	}
	text, err := l.Readable(id)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.ParseReadable(text); err != nil || got != id {
		t.Fatalf("%s: %d, %v", text, got, err)
	}
	fraction := text[len("20060102-150405") : len("20060102-150405")+len(".216")]
	for _, wrong := range []string{
		text + "-", text[:8] + text[8:15] + "," + fraction[1:] + text[15+len(fraction):],
		text[:15] + fraction + "0000009" + text[15+len(fraction):],
	} {
		if got, err := l.ParseReadable(wrong); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%s is read as %d, %v", wrong, got, err)
		}
	}
	for _, wrong := range []string{"41/0/10/12,unit=1ms,unit=2ms", "41/0/10/12,epoch=+5", "41/0/10/12,unit=+1ms"} {
		if got, err := firn.ParseLayout(wrong); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%s is read as %v, %v", wrong, got, err)
		}
	}
}

func TestAValueThatIsNoneOfAKindNamesItself(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{"ClockKind(3)": firn.ClockKind(3), "SequenceStart(3)": firn.SequenceStart(3), "steady": firn.ClockSteady, "carry": firn.StartCarry} {
		if got.String() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

func TestALongTextIsCutBetweenCharacters(t *testing.T) {
	for _, text := range []string{"a" + strings.Repeat("é", 40), strings.Repeat("é", 40), strings.Repeat("x", 70), strings.Repeat("\x80", 70)} {
		err := firn.NewSyntaxError("name", text, "")
		if cut, ok := strings.CutSuffix(err.Text, "…"); !ok || len(cut) > 64 || !strings.HasPrefix(text, cut) || utf8.ValidString(text) && (len(cut) < 63 || !utf8.ValidString(cut)) {
			t.Errorf("%q is cut to %q", text, err.Text)
		}
	}
}

func TestARangeOfOneValueIsNamedAsOne(t *testing.T) {
	if got := firn.NewRangeError("worker", 3, 0, 0, "its layout").Error(); got != "worker 3 is out of range: only 0 is allowed (its layout)" {
		t.Error(got)
	}
}
