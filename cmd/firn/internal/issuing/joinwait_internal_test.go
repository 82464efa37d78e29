package issuing

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

func TestAPoolThatIsBeingJoinedSaysWhatForAndHowLong(t *testing.T) {
	var out strings.Builder
	p := &pool{name: "slow"}
	log := slog.New(&joinLog{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}), p}).With("a", 1)
	said := func() (string, time.Duration) {
		t.Helper()
		_, err := p.held()
		f := failure.Of(err)
		if f.Code != "joining" || f.Status != 503 {
			t.Error(f)
		}
		return f.Message, f.Retry
	}
	const before, after = "pool slow: the server is joining it: ", ". Namespaces of other kinds and pools may be served already"
	expect := func(want string, least, most time.Duration) {
		t.Helper()
		if got, retry := said(); got != before+want+after || retry < least || retry > most {
			t.Errorf("%s, again after %v; want %s, after %v to %v", got, retry, before+want+after, least, most)
		}
	}
	expect("it waits for a worker", time.Second, time.Second)
	log.Warn("unrelated")
	expect("it waits for a worker", time.Second, time.Second)

	ends := time.Now().Add(7 * time.Second)
	log.Info("waiting before a worker is granted", "for", time.Until(ends), "because", "the pool is new")
	if got, retry := said(); !strings.HasPrefix(got, before+"waiting before a worker is granted, since the pool is new, until 20") || retry < 5*time.Second || retry > 7*time.Second {
		t.Errorf("%s, again after %v", got, retry)
	}
	ends = time.Now().Add(time.Hour)
	log.Info("waiting for the fence of a pinned worker", "until", ends)
	expect("waiting for the fence of a pinned worker, until "+ends.UTC().Format(time.RFC3339), longestRetry, longestRetry)
	log.Info("waiting", "until", time.Now())
	expect("it waits for a worker", time.Second, time.Second)

	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "msg=unrelated a=1") {
		t.Errorf("the log has %s", text)
	}
}
