package telemetry_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
)

func lost(n int64) []byte { return fmt.Appendf(nil, "lost %d\n", n) }

// A reader takes a record whenever it is allowed to.
type reader struct {
	goes chan struct{} // closed: it reads

	mu   sync.Mutex
	text bytes.Buffer
	err  error
}

func (r *reader) Write(p []byte) (int, error) {
	<-r.goes
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	return r.text.Write(p)
}

func (r *reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *reader) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.SplitAfter(strings.TrimSuffix(r.text.String(), "\n"), "\n")
}

func write(t *testing.T, to io.Writer, record string) {
	t.Helper()
	if n, err := io.WriteString(to, record); n != len(record) || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
}

func TestRecordsAreWrittenInTheirOrderBeforeCloseReturns(t *testing.T) {
	r := &reader{goes: make(chan struct{})}
	close(r.goes)
	ended := 0
	q := telemetry.NewQueue(r, lost, func() error { ended++; return io.ErrNoProgress })
	for i := range 1000 {
		write(t, q, fmt.Sprintln(i))
	}
	for range 2 {
		if err := q.Close(); !errors.Is(err, io.ErrNoProgress) {
			t.Error(err)
		}
	}
	if got := r.lines(); len(got) != 1000 || got[0] != "0\n" || got[999] != "999" || ended != 1 || q.Lost() != 0 {
		t.Errorf("%d lines, ended %d times, %d lost", len(got), ended, q.Lost())
	}
	if write(t, q, "late\n"); q.Lost() != 1 {
		t.Errorf("a record after Close is not counted: %d", q.Lost())
	}
}

// In the bubble, a Write that waited for the reader would be a deadlock, which ends the test.
func TestNothingWaitsForAReaderThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{goes: make(chan struct{})}
		q := telemetry.NewQueue(r, lost, nil)
		write(t, q, "first\n")
		synctest.Wait() // the queue's goroutine now waits in a write
		const records = 20_000
		record := strings.Repeat("x", 99) + "\n"
		for range records {
			write(t, q, record)
		}
		missing := q.Lost()
		if missing < records/4 || missing > records*3/4 {
			t.Errorf("%d of %d records of 100 bytes were lost: 1 MiB has room for 6,393", missing, records)
		}
		close(r.goes)
		synctest.Wait()
		write(t, q, "later\n")
		synctest.Wait()
		got := r.lines()
		if n := len(got); int64(n) != 1+records-missing+2 || got[n-2] != string(lost(missing)) || got[n-1] != "later" {
			t.Errorf("%d lines, which end with %q", n, got[max(0, n-2):])
		}
		if err := q.Close(); err != nil || q.Lost() != missing {
			t.Error(err, q.Lost())
		}
	})
}

func TestCloseWaitsASecondForAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{goes: make(chan struct{})}
		q := telemetry.NewQueue(r, lost, nil)
		write(t, q, "first\n")
		began := time.Now()
		if err := q.Close(); err == nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		close(r.goes) // so that the goroutine ends
	})
}

func TestRecordsThatCannotBeWrittenAreCountedAndReportedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{goes: make(chan struct{}), err: errors.New("disk full")}
		close(r.goes)
		q := telemetry.NewQueue(r, lost, nil)
		for range 3 {
			write(t, q, "record\n")
			synctest.Wait()
		}
		r.fail(nil)
		write(t, q, "later\n")
		synctest.Wait()
		if err := q.Close(); err != nil || q.Lost() != 3 || strings.Join(r.lines(), "") != "later\nlost 3" {
			t.Errorf("%v, %d lost, %q", err, q.Lost(), r.lines())
		}
	})
}
