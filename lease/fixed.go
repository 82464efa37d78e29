package lease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
)

// Fixed returns a [Source] of a worker number that only this process has, and of spares, which only it has
// too: the policy switch uses those when the clock goes back. It takes the first of all its numbers whose
// earlier ids all lie before the clock's time. If there is none, or the clock is before the start of the
// process, the next policy serves the call. A number that was left counts as held until the next look.
//
// Fixed has no store, so nothing outlives the process. A restart repeats no id under the conditions of
// [firn.New], if all processes that had these numbers read the same clock. ClockVirtual
// without a bound, or with From, breaks them. So does a restart while the clock is still back: the new
// process cannot know what the old one has issued ahead of the clock. Close of the old one knows it: its
// error says until when no process may start, and without an error one may start at once. A crash says
// nothing: where the clock may be back then, use a store ([Open]).
//
// Give each process, and each of its leases, a source of its own. A source can be kept again after Close,
// and then knows what it has issued.
func Fixed(worker int64, spares ...int64) Source {
	numbers := append([]int64{worker}, spares...)
	return &fixed{numbers: numbers, next: func(context.Context) ([]int64, error) { return numbers, nil }}
}

// FixedFunc is [Fixed] for a number that a function returns: an ordinal, or a new row of a table. The function may wait
// until another process has closed its lease of the number. The policy switch calls it again for another number, which no
// other process may have had since this one began; if it returns the one in use, the next policy serves the call. Its
// context is that of [Keep] or of the call for an id, and ends after 10 seconds at a switch. It may be called concurrently.
func FixedFunc(next func(ctx context.Context) (int64, error)) Source {
	if next == nil {
		return &fixed{}
	}
	return &fixed{next: func(ctx context.Context) ([]int64, error) {
		number, err := next(ctx)
		return []int64{number}, err
	}}
}

// A fixed source grants a number for ever, and again only above its earlier ids.
//
// No two grants allow the same tick of a number. Within this process a number is granted from a tick above
// all its earlier grants, once these were released. All grants of this process begin above floor, and all
// ids of earlier processes lie at or below it, under the conditions of Fixed: that is what the first ask
// promises. Spares need the floor as well: an earlier process may have used them too.
type fixed struct {
	numbers []int64 // nil: those of a function
	next    func(ctx context.Context) ([]int64, error)

	mu     sync.Mutex // guards all below
	layout firn.Layout
	begun  bool
	floor  firn.Tick
	used   map[int64]use
}

// A use is the latest grant of a number.
type use struct {
	after firn.Tick // identifies the grant
	last  firn.Tick // the last tick that ids may carry; endless while it is held
}

// Traits implements [Source].
func (f *fixed) Traits() Traits { return Traits{Fit: f.fit, Ended: f.ended} }

// fit returns an error if these numbers cannot keep a lease.
func (f *fixed) fit(cfg Config) error {
	if f.next == nil {
		return &firn.SyntaxError{Reason: "lease: FixedFunc has no function: give it one that returns a number"}
	}
	if f.numbers == nil {
		return f.settle(cfg.Generator.Layout)
	}
	if err := checkNumbers(f.numbers, cfg.Generator.Layout); err != nil {
		return fmt.Errorf("lease: Fixed: %w", config.In("", err)) // they are no fields of the Config
	}
	switch other := len(f.numbers) > 1; {
	case !other && switches(cfg.Generator.Rollback):
		return errNoOther
	case other && !switches(cfg.Generator.Rollback):
		return config.In("Rollback", firn.NewSyntaxError("rollback", cfg.Generator.Rollback.String(), "only the policy switch uses spares: add switch, or leave out the spares"))
	}
	return f.settle(cfg.Generator.Layout)
}

// settle returns an error for a second layout: ticks of two must not be compared.
func (f *fixed) settle(l firn.Layout) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.layout == (firn.Layout{}) {
		f.layout = l
	}
	if f.layout != l {
		return config.In("Layout", firn.NewSyntaxError("layout", l.String(), "the source was kept with layout "+f.layout.String()+": give each layout a source of its own"))
	}
	return nil
}

// checkNumbers checks a worker and its spares.
func checkNumbers(numbers []int64, l firn.Layout) error {
	for i, n := range numbers {
		what, field := "spare", "Spares"
		if i == 0 {
			what, field = "worker", "Pinned" // in the settings of a pool
		}
		if err := config.Check(what, n, 0, l.MaxWorker(), "layout "+l.Bits()); err != nil {
			return config.In(field, err)
		}
		if at := slices.Index(numbers[:i], n); at >= 0 {
			why := "it is named twice: name each once"
			if at == 0 {
				why = "that is the worker itself: name other numbers"
			}
			return config.In(field, firn.NewSyntaxError(what, fmt.Sprint(n), why))
		}
	}
	return nil
}

// Acquire implements [Source]. The error matches [ErrFull] if no number is free.
func (f *fixed) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	numbers, err := f.next(ctx) // without the lock: a function may take long, and the former holder make ids meanwhile
	if err != nil {
		return firn.Grant{}, fmt.Errorf("lease: the number of a worker: %w", err)
	}
	asked := ask()
	f.mu.Lock()
	defer f.mu.Unlock()
	from := asked.From
	switch {
	case !f.begun:
		f.begun, f.floor, f.used = true, asked.From-1, map[int64]use{}
	case f.holds():
		from = asked.Now // a switch: the call must not have to wait for the lead
	}
	for _, n := range numbers {
		if last := f.last(n); last < from {
			f.used[n] = use{from - 1, endless}
			return firn.Grant{Worker: n, After: from - 1, Through: endless}, nil
		}
	}
	return firn.Grant{}, f.full(numbers, from)
}

func (f *fixed) holds() bool {
	for _, u := range f.used {
		if u.last == endless {
			return true
		}
	}
	return false
}

// last returns the last tick of which a number may have ids: endless while it is held.
func (f *fixed) last(number int64) firn.Tick {
	if u, ok := f.used[number]; ok {
		return u.last
	}
	return f.floor
}

// full says why no number is free.
func (f *fixed) full(numbers []int64, from firn.Tick) error {
	why := make([]string, len(numbers))
	for i, n := range numbers {
		switch last := f.last(n); {
		case last == endless:
			why[i] = fmt.Sprintf("worker %d is held", n)
		case last > f.floor:
			why[i] = fmt.Sprintf("worker %d has ids up to %s", n, f.time(last))
		default:
			why[i] = fmt.Sprintf("an earlier process may have used worker %d until %s", n, f.time(last))
		}
	}
	return fmt.Errorf("%w: no worker for the time %s: %s", ErrFull, f.time(from), strings.Join(why, ", "))
}

func (f *fixed) time(tick firn.Tick) string {
	return f.layout.Time(tick).UTC().Format(time.RFC3339Nano)
}

// Renew implements [Source]: a grant needs no renewal.
func (f *fixed) Renew(_ context.Context, held firn.Grant, _ Ask) (firn.Grant, error) {
	return held, nil
}

// Look implements [Source]: no other process takes the number.
func (f *fixed) Look(context.Context, firn.Grant) error { return nil }

// Release implements [Source].
func (f *fixed) Release(_ context.Context, held firn.Grant, last firn.Tick) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.used[held.Worker]; u.last == endless && u.after == held.After {
		f.used[held.Worker] = use{held.After, max(last, held.After)}
	}
	return nil
}

// ended returns an error if ids of this process lie at or above the tick from which a process that starts
// now would issue its own. Nothing else can tell that process.
func (f *fixed) ended(from firn.Tick) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var number int64
	var latest firn.Tick
	for n, u := range f.used {
		if u.last < endless && u.last > latest {
			latest, number = u.last, n
		}
	}
	if latest < from {
		return nil
	}
	return fmt.Errorf("lease: worker %d has ids up to %s, ahead of the clock: start no process with its numbers before the clock has passed that, or it repeats them (over a store it would not)",
		number, f.time(latest))
}

const endless = firn.Tick(firn.MaxID)
