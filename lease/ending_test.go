package lease

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// The store has nothing against the fence of a layout that has ended, which is where it was.
func TestTheEndOfALayoutIsLoggedOnceBeforeAndOnceAfter(t *testing.T) {
	w := newWorld(t)
	layout, err := firn.ParseLayout("34/0/10/12")
	if err != nil {
		t.Fatal(err)
	}
	if layout, err = withEpoch(layout, noon); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	l := w.start(func(cfg *Config) {
		cfg.Generator.Layout = layout
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	wantLog := func(when string, want int, level string) {
		t.Helper()
		l.turn(context.Background())
		l.turn(context.Background())
		if n := strings.Count(log.String(), "out of time"); n != want || !strings.Contains(log.String(), level) {
			t.Errorf("%s it was logged %d times:\n%s", when, n, log.String())
		}
		log.Reset()
	}
	const warned = 90 * 24 * time.Hour
	wantLog("far from its end", 0, "")
	w.time.Pass(layout.End().Sub(noon) - warned - time.Minute)
	wantLog("91 days before its end", 0, "")
	w.time.Pass(2 * time.Minute)
	wantLog("90 days before its end", 1, "level=WARN")
	w.time.Pass(warned / 2)
	wantLog("nearer to its end", 0, "")
	w.time.Pass(layout.End().Sub(w.time.Wall()))
	wantLog("at its end", 2, "level=ERROR") // and why no other worker is found
	w.time.Pass(endsSoon)
	wantLog("long after its end", 0, "")

	w = newWorld(t)
	w.time.Pass(layout.End().Sub(noon) - time.Hour)
	l = w.start(func(cfg *Config) {
		cfg.Generator.Layout = layout
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	if !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("a process that begins is not warned:\n%s", log.String())
	}
	wantLog("later on", 1, "level=WARN")
}
