package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// The follower may read from a disk that does not answer: it does not end here.
func TestTheEndOfAServerDoesNotWaitForItsFollowerForEver(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	awaitFollower(make(chan struct{}), time.Millisecond, log)
	if !strings.Contains(text.String(), "shutting down without it") {
		t.Errorf("log: %q", &text)
	}
	text.Reset()
	ended := make(chan struct{})
	close(ended)
	awaitFollower(ended, time.Hour, log)
	if text.Len() > 0 {
		t.Errorf("log: %q", &text)
	}
}
