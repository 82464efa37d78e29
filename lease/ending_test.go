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
	wantLog := func(when string, level string) {
		t.Helper()
		l.turn(context.Background())
		l.turn(context.Background())
		want := 1
		if level == "" {
			want = 0
		}
		if n := strings.Count(log.String(), `msg="the layout`); n != want || !strings.Contains(log.String(), level) {
			t.Errorf("%s it was logged %d times:\n%s", when, n, log.String())
		}
		log.Reset()
	}
	wantLog("far from its end", "")
	w.time.Pass(layout.End().Sub(noon) - endsSoon + time.Minute)
	wantLog("near its end", "level=WARN")
	w.time.Pass(endsSoon / 2)
	wantLog("nearer to its end", "")
	w.time.Pass(endsSoon)
	wantLog("after its end", "level=ERROR")
	w.time.Pass(endsSoon)
	wantLog("long after its end", "")

	w = newWorld(t)
	w.time.Pass(layout.End().Sub(noon) - time.Hour)
	l = w.start(func(cfg *Config) {
		cfg.Generator.Layout = layout
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	if !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("a process that begins is not warned:\n%s", log.String())
	}
	wantLog("later on", "level=WARN")
}
