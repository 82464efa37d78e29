package segment

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// A shaky clock panics at the next reading, once that is set.
type shaky struct {
	firn.TimeSource
	next bool
}

func (s *shaky) Monotonic() time.Duration {
	if s.next {
		s.next = false
		panic("shaky")
	}
	return s.TimeSource.Monotonic()
}

// Programs recover from panics of a handler, and go on.
func TestAPanicOfTheClockHoldsNoLaterCallUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := storetest.NewFaulty(memstore.New(nil))
		down.SetDown(true)
		clock := &shaky{TimeSource: firn.SystemTime()}
		s, err := New(Config{Store: down, Time: clock})
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.Namespace("orders")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Next(t.Context()); err == nil {
			t.Fatal("it has an id")
		}
		synctest.Wait()
		clock.next = true
		func() {
			defer func() {
				if why := recover(); why != "shaky" {
					t.Error(why)
				}
			}()
			id, err := n.Next(t.Context()) // reads whether the latest fetch failed a short while ago
			t.Error(id, err)
		}()
		if clock.next || !n.mu.TryLock() {
			t.Fatal("the name is locked, or the clock was not read")
		}
		n.mu.Unlock()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
