package respapi

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// A fault in one command ends its connection, and not the process.
func TestAPanicEndsOneConnection(t *testing.T) {
	var log bytes.Buffer
	s := open(t, counted)
	s.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	s.table.byName["echo"].answer = func(*conn, [][]byte) { panic("a fault of ours") }
	whole := func() int { return 1 << 10 }
	for range 2 {
		if got := s.play([]byte("ECHO x\r\nPING\r\n"), whole); got != "" {
			t.Errorf("answered %q", got)
		}
		if got := s.play([]byte("PING\r\n"), whole); got != "+PONG\r\n" {
			t.Errorf("another connection got %q", got)
		}
	}
	if n := strings.Count(log.String(), "a fault of ours"); n != 2 || s.connections() != 0 {
		t.Errorf("%d of 2 panics are in the log, %d connections are left: %s", n, s.connections(), &log)
	}
}
