package config_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
)

// pipe is a writer that blocks until opened is closed.
type pipe struct {
	opened chan struct{} // nil: it is open
	text   bytes.Buffer
}

func (p *pipe) Write(b []byte) (int, error) {
	if p.opened != nil {
		<-p.opened
	}
	return p.text.Write(b)
}

// filled returns the log that a package uses for one that a program gives.
func filled(t *testing.T, to *pipe) *slog.Logger {
	t.Helper()
	var (
		source firn.TimeSource
		random func() uint64
	)
	log := slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	config.Fill(&source, &random, &log)
	again := log
	config.Fill(&source, &random, &again)
	if again != log {
		t.Fatal("a log is wrapped twice")
	}
	return log
}

func TestARecordIsWrittenBeforeItsCallerGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{}
		log := filled(t, p)
		log.Debug("is not enabled")
		log.With("a", 1).WithGroup("g").Info("one", "b", 2)
		log.Warn("two")
		const want = "level=INFO msg=one a=1 g.b=2\nlevel=WARN msg=two\n"
		if is := p.text.String(); is != want {
			t.Errorf("%q, want %q", is, want)
		}
	})
}

func TestALogThatBlocksHoldsNoCallerUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{opened: make(chan struct{})}
		log := filled(t, p)
		taken := make(chan struct{})
		begun := time.Now()
		go func() {
			for i := range 300 {
				log.With("of", i%7).InfoContext(context.Background(), "record", "n", i)
			}
			close(taken)
		}()
		<-taken
		if took := time.Since(begun); took > 200*time.Millisecond {
			t.Errorf("300 records took %v", took)
		}
		close(p.opened)
		synctest.Wait()
		text := p.text.String()
		last := -1
		for line := range strings.Lines(text) {
			var of, n int
			if _, err := fmt.Sscanf(line, "level=INFO msg=record of=%d n=%d\n", &of, &n); err != nil {
				continue
			}
			if n != last+1 || of != n%7 {
				t.Fatalf("%q after %d", line, last)
			}
			last = n
		}
		if want := fmt.Sprintf("records=%d\n", 299-last); last < 250 || !strings.Contains(text, want) {
			t.Errorf("%d were written, and it does not say %s: %s", last+1, want, text[len(text)-200:])
		}
		log.Info("taken again")
		if text := p.text.String(); !strings.HasSuffix(text, "level=INFO msg=\"taken again\"\n") {
			t.Error(text[len(text)-200:])
		}
	})
}

// A counting handler asks Enabled under the lock under which it writes, as those do that count or sample.
type counting struct {
	slog.Handler
	lock chan struct{} // a mutex would not let time pass
}

func (c counting) Enabled(ctx context.Context, level slog.Level) bool {
	c.lock <- struct{}{}
	defer func() { <-c.lock }()
	return c.Handler.Enabled(ctx, level)
}

func (c counting) Handle(ctx context.Context, r slog.Record) error {
	c.lock <- struct{}{}
	defer func() { <-c.lock }()
	return c.Handler.Handle(ctx, r)
}

func TestALogWhoseEnabledBlocksHoldsNoCallerUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{opened: make(chan struct{})}
		theirs := slog.New(counting{slog.NewTextHandler(p, nil), make(chan struct{}, 1)})
		ours := theirs
		config.Fill(new(firn.TimeSource), new(func() uint64), &ours)
		go theirs.Info("of the program")
		synctest.Wait()
		logged := false
		go func() {
			for range 300 {
				ours.Debug("is not enabled")
				ours.Info("of the library")
			}
			logged = true
		}()
		time.Sleep(200 * time.Millisecond) // of the bubble
		synctest.Wait()
		if !logged {
			t.Error("records of the library wait for the lock of the program")
		}
		close(p.opened)
		synctest.Wait()
		if text := p.text.String(); !strings.Contains(text, "of the library") || strings.Contains(text, "not enabled") {
			t.Error(text)
		}
	})
}

// A log that takes no records below Info is not full of them, and has not lost them.
func TestDebugRecordsLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{opened: make(chan struct{})}
		log := slog.New(slog.NewTextHandler(p, nil))
		config.Fill(new(firn.TimeSource), new(func() uint64), &log)
		log.Info("waits")
		for range 1000 {
			log.Debug("is not enabled")
		}
		log.Warn("counts")
		close(p.opened)
		synctest.Wait()
		if text := p.text.String(); !strings.Contains(text, "counts") || strings.Contains(text, "lost") {
			t.Error(text)
		}
	})
}
