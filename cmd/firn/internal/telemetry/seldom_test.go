package telemetry_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
)

func TestOneEventPassesInEachInterval(t *testing.T) {
	l := telemetry.NewSeldom(10 * time.Second)
	for _, c := range []struct {
		at      time.Duration
		omitted int
		due     bool
	}{
		{0, 0, true}, {0, 0, false}, {9 * time.Second, 0, false}, {10*time.Second - 1, 0, false},
		{10 * time.Second, 3, true}, {19 * time.Second, 0, false}, {time.Hour, 1, true}, {2 * time.Hour, 0, true},
	} {
		if omitted, due := l.Due(c.at); omitted != c.omitted || due != c.due {
			t.Errorf("at %v: %d, %v, want %d, %v", c.at, omitted, due, c.omitted, c.due)
		}
	}
}
