package register_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

const key = "firn/test"

var background = context.Background()

// world is a register over a memory store that fails as the test demands. Each write appends a letter
// to the value found.
type world struct {
	t       *testing.T
	mem     *memstore.Store
	store   *storetest.Faulty
	reg     *register.Register
	decided int
}

// play runs a test in virtual time. Outcomes are those of the writes, in order; the last one repeats
// for ever.
func play(t *testing.T, outcomes []storetest.Outcome, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		f := storetest.NewFaulty(mem)
		f.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op != storetest.OpCompareAndSwap || len(outcomes) == 0 {
				return storetest.Pass
			}
			return outcomes[min(c.N, len(outcomes))-1]
		}
		test(&world{t: t, mem: mem, store: f, reg: &register.Register{
			Store: f, Key: key, Time: firn.SystemTime(), Random: func() uint64 { return 0 },
		}})
	})
}

// add appends the next letter, so that the bytes of each write are unique.
func (w *world) add(found store.Entry) ([]byte, error) {
	w.decided++
	return fmt.Append(found.Value, string(rune('a'+w.decided-1))), nil
}

func (w *world) value() string {
	w.t.Helper()
	e, err := w.mem.Get(background, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		w.t.Fatal(err)
	}
	return string(e.Value)
}

// write makes another writer write.
func (w *world) write(value string) store.Entry {
	w.t.Helper()
	e, _ := w.mem.Get(background, key)
	e, err := w.mem.CompareAndSwap(background, key, e.Revision, []byte(value))
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// wrote expects an update to succeed with so many calls.
func (w *world) wrote(e store.Entry, err error, value string, gets, writes int) {
	w.t.Helper()
	if err != nil || string(e.Value) != value || w.value() != value {
		w.t.Errorf("%q, %v; the store has %q; want %q", e.Value, err, w.value(), value)
	}
	now, _ := w.mem.Get(background, key)
	if e.Revision == 0 || e.Revision != now.Revision {
		w.t.Errorf("revision %d, the store has %d", e.Revision, now.Revision)
	}
	w.called(gets, writes)
}

func (w *world) called(gets, writes int) {
	w.t.Helper()
	if c := w.store.Counts(); c.Get != gets || c.CompareAndSwap != writes {
		w.t.Errorf("%d reads and %d writes, want %d and %d", c.Get, c.CompareAndSwap, gets, writes)
	}
}

// failed expects an update to fail and return nothing.
func (w *world) failed(e store.Entry, err error, want error, unapplied bool) {
	w.t.Helper()
	if !errors.Is(err, want) || store.Unapplied(err) != unapplied || e.Revision != 0 || e.Value != nil {
		w.t.Errorf("%+v, %v; want %v, certainly not applied: %v", e, err, want, unapplied)
	}
}

const (
	pass    = storetest.Pass
	applied = storetest.FailApplied
	lost    = storetest.FailUnapplied
	late    = storetest.FailLate
	refused = storetest.Refuse
)

func TestAConfirmedWriteEndsAnUpdate(t *testing.T) {
	play(t, nil, func(w *world) {
		began := time.Now()
		e, err := w.reg.Update(background, w.add)
		w.wrote(e, err, "a", 1, 1)
		e, err = w.reg.Update(background, w.add) // a confirmed entry is known
		w.wrote(e, err, "ab", 1, 2)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it waited %v", waited)
		}
	})
}

func TestAFasterWriteIsReadAndOverwritten(t *testing.T) {
	play(t, nil, func(w *world) {
		if _, err := w.reg.Update(background, w.add); err != nil {
			t.Fatal(err)
		}
		w.write("x")
		w.write("y")
		began := time.Now()
		e, err := w.reg.Update(background, w.add)
		w.wrote(e, err, "yc", 2, 3)
		if waited := time.Since(began); waited != time.Millisecond {
			t.Errorf("it waited %v between two tries, want half of 2ms without luck", waited)
		}
		if w.reg.Ours() {
			t.Error("a write that was confirmed is said to be unknown")
		}
	})
}

func TestAnUpdateThatIsAlwaysTooSlowEnds(t *testing.T) {
	play(t, nil, func(w *world) {
		tries := 0
		e, err := w.reg.Update(background, func(store.Entry) ([]byte, error) {
			tries++
			w.write(fmt.Sprint("other", tries))
			return []byte("mine"), nil
		})
		w.failed(e, err, store.ErrConflict, true)
		if tries != 65 {
			t.Errorf("%d tries", tries)
		}
	})
}

// The result for every outcome of the first write. The update always ends with a write that the store
// has confirmed, made after the unknown one was found or found missing.
func TestAnUnknownOutcomeIsSettledByAWriteThatIsConfirmed(t *testing.T) {
	for _, c := range []struct {
		name          string
		outcomes      []storetest.Outcome
		value         string
		gets, writes  int
		ours, decided int // how often decide found its own write, and was called
	}{
		{"applied", []storetest.Outcome{applied, pass}, "ab", 2, 2, 1, 2},
		{"not applied", []storetest.Outcome{lost, pass}, "b", 2, 2, 0, 2},
		{"applied late", []storetest.Outcome{late, pass}, "ac", 3, 3, 1, 3},
		{"applied twice over", []storetest.Outcome{applied, applied, pass}, "abc", 3, 3, 2, 3},
		{"not applied, then applied", []storetest.Outcome{lost, applied, pass}, "bc", 3, 3, 1, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, c.outcomes, func(w *world) {
				ours := 0
				e, err := w.reg.Update(background, func(found store.Entry) ([]byte, error) {
					if w.reg.Ours() {
						ours++
					}
					return w.add(found)
				})
				w.wrote(e, err, c.value, c.gets, c.writes)
				if ours != c.ours || w.decided != c.decided {
					t.Errorf("found its own write %d times of %d, want %d of %d", ours, w.decided, c.ours, c.decided)
				}
			})
		})
	}
}

// A store that applies and confirms nothing is cut off from its replicas.
func TestAStoreThatNeverConfirmsGivesNothing(t *testing.T) {
	play(t, []storetest.Outcome{applied}, func(w *world) {
		for range 3 {
			w.decided = 0
			began := time.Now()
			e, err := w.reg.Update(background, w.add)
			w.failed(e, err, storetest.ErrAnswerLost, false)
			if waited := time.Since(began); w.decided != 5 || waited > time.Second {
				t.Errorf("%d writes in %v", w.decided, waited)
			}
			if strings.Count(err.Error(), storetest.ErrAnswerLost.Error()) != 1 {
				t.Errorf("it does not say once what happened: %v", err)
			}
		}
		if w.value() == "" {
			t.Error("nothing was applied: this test shows nothing")
		}
	})
}

func TestAnOwnUnknownWriteIsRepeatedEvenIfDecideWritesNothing(t *testing.T) {
	play(t, []storetest.Outcome{applied, pass}, func(w *world) {
		e, err := w.reg.Update(background, func(found store.Entry) ([]byte, error) {
			if found.Revision == 0 {
				return []byte("mine"), nil
			}
			return nil, nil
		})
		w.wrote(e, err, "mine", 2, 2)
		e, err = w.reg.Update(background, func(store.Entry) ([]byte, error) { return nil, nil })
		w.wrote(e, err, "mine", 2, 2) // it is confirmed by now
	})
}

func TestACorrectValueOfAnotherWriterIsNotOverwritten(t *testing.T) {
	play(t, []storetest.Outcome{lost}, func(w *world) {
		e, err := w.reg.Update(background, func(found store.Entry) ([]byte, error) {
			if found.Revision == 0 {
				w.write("theirs")
				return []byte("mine"), nil
			}
			return nil, nil
		})
		w.wrote(e, err, "theirs", 2, 1)
	})
}

func TestOnceAWriteIsUnknownNoErrorSaysThatNothingWasApplied(t *testing.T) {
	for name, c := range map[string]struct {
		outcomes []storetest.Outcome
		then     func(w *world) // after the first write
		want     error
	}{
		"the read is refused":    {[]storetest.Outcome{applied}, func(w *world) { w.refuseReads() }, storetest.ErrAnswerLost},
		"the store is away":      {[]storetest.Outcome{applied}, func(w *world) { w.store.SetDown(true) }, store.ErrUnavailable},
		"the write is refused":   {[]storetest.Outcome{applied, refused}, func(*world) {}, storetest.ErrAnswerLost},
		"others are quicker":     {[]storetest.Outcome{applied, pass}, func(*world) {}, storetest.ErrAnswerLost},
		"the caller has no time": {[]storetest.Outcome{applied, pass}, nil, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, c.outcomes, func(w *world) {
				ctx := background
				if c.then == nil {
					limited, cancel := context.WithTimeout(ctx, time.Millisecond+time.Microsecond)
					defer cancel()
					ctx = limited
				}
				e, err := w.reg.Update(ctx, func(store.Entry) ([]byte, error) {
					w.decided++
					if w.decided > 1 {
						w.write(fmt.Sprint("other", w.decided))
					} else if c.then != nil {
						c.then(w)
					}
					return fmt.Append(nil, w.decided), nil
				})
				w.failed(e, err, c.want, false)
			})
		})
	}
}

// broken is a store whose second read fails.
type broken struct {
	store.Store
	reads int
	err   error
}

func (b *broken) Get(ctx context.Context, key string) (store.Entry, error) {
	if b.reads++; b.reads > 1 {
		return store.Entry{}, b.err
	}
	return b.Store.Get(ctx, key)
}

func TestAnErrorAfterAnUnknownWriteNamesBoth(t *testing.T) {
	play(t, []storetest.Outcome{applied}, func(w *world) {
		torn := errors.New("the cable is torn")
		w.reg.Store = &broken{Store: w.store, err: torn}
		e, err := w.reg.Update(background, w.add)
		w.failed(e, err, storetest.ErrAnswerLost, false)
		w.failed(e, err, torn, false)
	})
}

func (w *world) refuseReads() {
	writes := w.store.Script
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpGet {
			return refused
		}
		return writes(c)
	}
}

func TestARefusalEndsAnUpdateAtOnce(t *testing.T) {
	play(t, []storetest.Outcome{refused}, func(w *world) {
		e, err := w.reg.Update(background, w.add)
		w.failed(e, err, store.ErrRefused, true)
		w.called(1, 1)
	})
	play(t, nil, func(w *world) {
		w.refuseReads()
		e, err := w.reg.Update(background, w.add)
		w.failed(e, err, store.ErrRefused, true)
		w.called(1, 0)
	})
}

func TestAnErrorOfDecideEndsAnUpdateAndIsReturnedAsItIs(t *testing.T) {
	mine := errors.New("mine")
	play(t, []storetest.Outcome{applied}, func(w *world) {
		e, err := w.reg.Update(background, func(found store.Entry) ([]byte, error) {
			if found.Revision != 0 {
				return []byte("not to be written"), mine
			}
			return []byte("a"), nil
		})
		if err == nil || err.Error() != "mine" {
			t.Error(err)
		}
		w.failed(e, err, mine, false)
		w.called(2, 1)
	})
}

func TestAnUpdateEndsWithItsContext(t *testing.T) {
	why := errors.New("why")
	play(t, []storetest.Outcome{lost}, func(w *world) {
		ctx, cancel := context.WithCancelCause(background)
		e, err := w.reg.Update(ctx, func(found store.Entry) ([]byte, error) {
			cancel(why)
			return w.add(found)
		})
		w.failed(e, err, why, false)
		w.called(1, 1) // no further calls
	})
}

// silent is a store that does not answer.
type silent struct {
	store.Store
	reads bool // it answers reads
	calls int
}

func (s *silent) Get(ctx context.Context, key string) (store.Entry, error) {
	if s.reads {
		return s.Store.Get(ctx, key)
	}
	return s.answer(ctx)
}

func (s *silent) CompareAndSwap(ctx context.Context, _ string, _ store.Revision, _ []byte) (store.Entry, error) {
	return s.answer(ctx)
}

func (s *silent) answer(ctx context.Context) (store.Entry, error) {
	s.calls++
	<-ctx.Done()
	return store.Entry{}, store.ContextError(ctx)
}

func TestPatienceBoundsEachCall(t *testing.T) {
	for _, reads := range []bool{false, true} {
		play(t, nil, func(w *world) {
			s := &silent{Store: w.mem, reads: reads}
			w.reg.Store, w.reg.Patience = s, time.Second
			began := time.Now()
			e, err := w.reg.Update(background, w.add)
			w.failed(e, err, context.DeadlineExceeded, false)
			want, calls := time.Second, 1
			if reads { // a hanging write has an unknown outcome
				want, calls = 5*time.Second, 5
			}
			if waited := time.Since(began); waited < want || waited > want+100*time.Millisecond || s.calls != calls {
				t.Errorf("%d calls that hang took %v", s.calls, waited)
			}
		})
	}
}

func TestAKnownEntryIsNotReadAgain(t *testing.T) {
	play(t, nil, func(w *world) {
		w.reg.Known(w.write("x"))
		e, err := w.reg.Update(background, w.add)
		w.wrote(e, err, "xa", 0, 1)
		w.reg.Known(store.Entry{Key: key})
		e, err = w.reg.Update(background, w.add) // the known entry is outdated
		w.wrote(e, err, "xac", 1, 3)
		w.write("y")
		w.reg.Forget()
		e, err = w.reg.Update(background, w.add)
		w.wrote(e, err, "yd", 2, 4)
	})
}

func TestAWriteNeedsARead(t *testing.T) {
	play(t, []storetest.Outcome{lost}, func(w *world) {
		e, err := w.reg.Write(background, []byte("a"))
		w.failed(e, err, store.ErrRefused, true)
		if e, err := w.reg.Read(background); err != nil || e.Key != key || e.Revision != 0 {
			t.Errorf("%+v, %v", e, err)
		}
		e, err = w.reg.Write(background, []byte("a"))
		w.failed(e, err, storetest.ErrAnswerLost, false)
		e, err = w.reg.Write(background, []byte("b"))
		w.failed(e, err, store.ErrRefused, true)
		w.called(1, 1)
	})
}

// Register copies the bytes of a write: a caller may reuse its buffer.
func TestAnUnknownWriteIsRememberedByItsBytes(t *testing.T) {
	play(t, []storetest.Outcome{applied}, func(w *world) {
		if _, err := w.reg.Read(background); err != nil {
			t.Fatal(err)
		}
		buffer := []byte("mine")
		if _, err := w.reg.Write(background, buffer); err == nil {
			t.Fatal("no error")
		}
		copy(buffer, "else")
		if w.reg.Ours() {
			t.Error("its own before it was read")
		}
		if _, err := w.reg.Read(background); err != nil || !w.reg.Ours() {
			t.Errorf("%v, not found again", err)
		}
		w.write("other")
		if _, err := w.reg.Read(background); err != nil || w.reg.Ours() {
			t.Errorf("%v, another's write is said to be its own", err)
		}
	})
}

func TestABackoffDoublesUpToABound(t *testing.T) {
	for _, luck := range []uint64{0, 1<<64 - 1} {
		b := register.Backoff{Random: func() uint64 { return luck }}
		var waits []string
		for range 9 {
			waits = append(waits, b.Next().Round(100*time.Microsecond).String())
		}
		b.Tries = 1000
		waits = append(waits, b.Next().Round(100*time.Microsecond).String())
		got := strings.Join(waits, " ")
		if luck == 0 && got != "1ms 2ms 4ms 8ms 16ms 32ms 64ms 125ms 125ms 125ms" {
			t.Error(got)
		}
		for range 2000 {
			if d := b.Next(); d > 375*time.Millisecond || d < 125*time.Millisecond {
				t.Fatalf("it waits %v", d)
			}
		}
	}
}

// One member's error cancels a whole group of callers.
func TestAnUpdateThatWasEndedWhileAWriteIsOpenIsLeftOpen(t *testing.T) {
	play(t, []storetest.Outcome{applied}, func(w *world) {
		ctx, cancel := context.WithCancelCause(background)
		e, err := w.reg.Update(ctx, func(found store.Entry) ([]byte, error) {
			// It ends while the update waits for its second try.
			time.AfterFunc(time.Microsecond, func() { cancel(fmt.Errorf("another: %w", store.ErrRefused)) })
			return w.add(found)
		})
		w.failed(e, err, storetest.ErrAnswerLost, false)
		w.failed(e, err, context.Canceled, false)
		if w.value() != "a" {
			t.Errorf("the store has %q, so this proves nothing", w.value())
		}
	})
}

func TestAnUnknownOutcomeKeepsTheTextOfTheRefusalThatFollowed(t *testing.T) {
	mem := memstore.New(nil)
	faulty := storetest.NewFaulty(mem)
	writes := 0
	faulty.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op != storetest.OpCompareAndSwap {
			return storetest.Pass
		}
		if writes++; writes == 1 {
			return storetest.FailUnapplied
		}
		return storetest.Refuse
	}
	reg := register.Register{Store: faulty, Key: key, Time: firn.SystemTime(), Random: func() uint64 { return 1 }}
	_, err := reg.Update(background, func(store.Entry) ([]byte, error) { return []byte("a"), nil })
	if err == nil || store.Unapplied(err) || strings.Contains(err.Error(), "PANIC") || !strings.Contains(err.Error(), "; then: ") {
		t.Errorf("%v", err)
	}
}

func TestARecordThatJSONCannotHoldIsAnError(t *testing.T) {
	if b, err := register.Encode(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)); err == nil || b != nil || !strings.Contains(err.Error(), "encode a record: ") {
		t.Errorf("%s, %v", b, err)
	}
}
