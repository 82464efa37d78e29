package lease

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// A Loan is a worker that is held for a program that makes its ids itself, as one in another language does. In the
// store it looks as if that program held it. The program may use the ticks from the beginning of its grant to the latest
// fence that [Lend], Renew or Look returned. After [ErrLost] it must stop at once.
//
// A handle names the loan in every process with the same store and settings. One that gets the handle of another's loan
// takes it over. The other process learns of it at its next call, and cannot refuse. A loan that nobody renews ends
// at its fence; it cannot be released before, since the program may have a copy: a forked process, say.
//
// Make one with [Lend] or [NewLoan]: the zero value is not usable. The methods may be called concurrently. A copy is the
// same loan.
type Loan struct {
	slots  *poolSource
	secret string
	worker int64
	window firn.Tick
	look   time.Duration

	refused error // see CheckLoans: then this process moves no fence

	seen *atomic.Pointer[reading] // when the latest call that succeeded began, or the claim; of all copies
}

// Lend claims a worker for the initial time, 0 to 30 days, rounded up to whole ticks, and the tolerance of clocks, by which the
// clock that [Loan.Now] shows may be ahead of this machine's; both together are a window at most. If its answer is lost, the
// worker is free again after that time. Renew grants a window. The cfg is that of the pool's other members, see [CheckLoans].
// Errors are those of [Open], and a *[firn.RangeError] for another initial time.
func Lend(ctx context.Context, cfg Config, initial time.Duration) (*Loan, firn.Grant, error) {
	if err := cmp.Or(CheckLoans(cfg), config.Check("initial time of a loan", initial, 0, maxWindow, "it is then renewed")); err != nil {
		return nil, firn.Grant{}, err
	}
	l, err := newLoan(cfg, register.Token(), 0)
	if err != nil {
		return nil, firn.Grant{}, err
	}
	grant, err := l.slots.Acquire(ctx, func() Ask {
		ask := l.ask()
		ask.Window = min(firn.Tick((initial+l.slots.rules.tolerance)/l.Layout().Unit()), l.window) // after the tick that begins next
		return ask
	})
	if err != nil {
		return nil, firn.Grant{}, err
	}
	l.worker = grant.Worker
	h, _ := l.holding()
	l.saw(h.looked)
	return l, grant, nil
}

// NewLoan returns the loan with a handle. It makes no call of the store.
func NewLoan(cfg Config, handle string) (*Loan, error) {
	secret, numbers, _ := strings.Cut(handle, ".")
	datacenter, worker, _ := strings.Cut(numbers, ".")
	// Parse errors need no check: the handle is compared.
	cfg.Generator.Datacenter, _ = strconv.ParseInt(datacenter, 10, 64) // that of the process that lent it
	n, _ := strconv.ParseInt(worker, 10, 64)
	if len(secret) != len(register.Token()) || handleOf(secret, cfg.Generator.Datacenter, n) != handle ||
		checkSlot(cmp.Or(cfg.Generator.Layout, firn.DefaultLayout()), cfg.Generator.Datacenter, n) != nil {
		return nil, errHandle
	}
	return newLoan(cfg, secret, n)
}

// errHandle does not repeat the handle, which is secret.
var errHandle = &firn.SyntaxError{Reason: "lease: this is no handle of a loan: give the one that was granted"}

func handleOf(secret string, datacenter, worker int64) string {
	return fmt.Sprintf("%s.%d.%d", secret, datacenter, worker)
}

// CheckLoans returns an error unless workers of a pool with these settings may be lent. What is lent already is still
// looked at with other settings.
func CheckLoans(cfg Config) error {
	switch {
	case cfg.Strict > 0:
		return config.Mistake("lease", "Strict", "belongs to a pool whose claims wait for minutes, which no request can: lend workers of a pool that is not strict")
	case cfg.Pinned != nil:
		return config.Mistake("lease", "Pinned", "belongs to a pool whose workers are given out by hand: lend workers of another pool")
	case cfg.Generator.Clock == firn.ClockVirtual:
		return config.Mistake("lease", "Clock", "is virtual, and the ids of other programs follow a clock: lend workers of another pool")
	}
	return nil
}

func newLoan(cfg Config, secret string, worker int64) (*Loan, error) {
	slots, err := newPoolSource(cfg)
	if err != nil {
		return nil, err
	}
	l, err := prepare(slots, cfg)
	if err != nil {
		return nil, err
	}
	// The record has only the hash: whoever can read the store, or the list of workers, cannot renew the loan.
	sum := sha256.Sum256([]byte(secret))
	slots.rules.token = base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])[:len(register.Token())]
	return &Loan{slots: slots, secret: secret, worker: worker, window: l.window, look: l.cfg.Look, refused: CheckLoans(cfg), seen: new(atomic.Pointer[reading])}, nil
}

// Handle names the loan. Whoever has it can renew it.
func (l *Loan) Handle() string {
	return handleOf(l.secret, l.slots.cfg.Generator.Datacenter, l.worker)
}

// Now returns the present tick by the store's clock as it was read last, and by this machine's if it has none. Steps of
// the wall clock do not move it, except over a store without a clock at the next Renew.
func (l *Loan) Now() firn.Tick { return l.at(l.slots.cfg.Generator.Time.Monotonic()) }

// Clock returns what Now showed when the latest Renew or Look that succeeded began, or the claim. A program sets its
// clock by it: this process may be stopped between the look and its answer, and the store forget the loan meanwhile. It
// is the store's clock, so that one clock error, at most the tolerance, has to be allowed for.
func (l *Loan) Clock() firn.Tick {
	if seen := l.seen.Load(); seen != nil {
		return l.at(seen.mono)
	}
	return l.Now()
}

// saw records that the worker was seen to be lent, after a reading. Calls may overlap: the later one counts.
func (l *Loan) saw(at reading) {
	for seen := l.seen.Load(); seen == nil || seen.mono < at.mono; seen = l.seen.Load() {
		if l.seen.CompareAndSwap(seen, &at) {
			return
		}
	}
}

func (l *Loan) at(mono time.Duration) firn.Tick {
	from := *l.slots.checked.Load()
	at := from.there
	if at.IsZero() {
		at = from.wall
	}
	return tickOf(l.Layout(), at.Add(mono-from.mono))
}

// Layout returns the layout of the pool.
func (l *Loan) Layout() firn.Layout { return l.slots.cfg.Generator.Layout }

// Every returns the longest time between two calls of Renew or Look.
func (l *Loan) Every() time.Duration { return l.look }

// Held returns the fence of the loan as this process holds it; -1 if it does not.
func (l *Loan) Held() firn.Tick {
	if h, ok := l.holding(); ok {
		return h.fence
	}
	return -1
}

// Due reports whether it is time for Renew: half the window is left of what the program knows.
func (l *Loan) Due(known firn.Tick) bool {
	return known < l.Layout().MaxTick() && known-l.Now() <= l.window/2
}

// Renew moves the fence to a window ahead, and returns it. Known is the fence that the program knows. If another process
// held the loan until now, this one takes it over. What it must not move, as its clock or its settings are wrong, it still
// looks at. If the store has forgotten the slot, and it cannot be written again, the loan is lost. Errors are [ErrLost],
// *[ClockError], the store's, those of [CheckLoans], and *[firn.TimeExhaustedError]. After any other than [ErrLost] the
// program may use its ticks.
func (l *Loan) Renew(ctx context.Context, known firn.Tick) (firn.Tick, error) {
	if l.refused != nil {
		_, err := l.keep(ctx, known, nil)
		return 0, cmp.Or(err, l.refused)
	}
	ask := l.ask()
	return l.keep(ctx, known, &ask)
}

// Look checks that the worker is still lent, as [Source.Look] does. It returns the fence, as far as the store has confirmed
// it. If another process holds the loan, Look writes nothing.
func (l *Loan) Look(ctx context.Context, known firn.Tick) (firn.Tick, error) {
	return l.keep(ctx, known, nil)
}

func (l *Loan) keep(ctx context.Context, known firn.Tick, ask *Ask) (fence firn.Tick, err error) {
	began := l.slots.read()
	defer func() {
		if err == nil {
			l.saw(began)
		}
	}()
	// What was begun is finished, though the program gives the request up: a slow store that has forgotten the slot must
	// have it again before newcomers have waited.
	ctx, cancel := turns.WithTimeout(context.WithoutCancel(ctx), l.slots.cfg.Generator.Time, callTimeout)
	defer cancel()
	if layout := l.Layout(); l.Now() >= layout.MaxTick() {
		return 0, &firn.TimeExhaustedError{Layout: layout, End: layout.End()}
	}
	if h, ok := l.holding(); ok && known <= h.fence { // a program that knows a later fence has renewed elsewhere
		grant, err := l.slots.keep(ctx, firn.Grant{Worker: h.worker, After: h.after, Through: h.fence}, ask)
		if after, held := l.holding(); err != nil && held && after.forgot && !errors.Is(err, ErrLost) {
			err = fmt.Errorf("%w: %w", errUnwritten, err)
		}
		if !errors.Is(err, errClaimedAgain) {
			return grant.Through, err
		}
		l.slots.forget(h)
	}
	fence, err = l.takeOver(ctx, known, ask)
	if err != nil {
		err = fmt.Errorf("lease: go on with worker %d of pool %q: %w", l.worker, l.slots.cfg.Pool, err)
	}
	return fence, err
}

// errUnwritten: the program cannot know that its failed requests no longer count, as a [Lease] does.
var errUnwritten = lost("its slot has vanished, or is an older copy, and could not be written again")

// takeOver claims the worker again for the same program, with an ask; otherwise it only reads.
func (l *Loan) takeOver(ctx context.Context, known firn.Tick, ask *Ask) (firn.Tick, error) {
	s := l.slots
	ctx = store.Urgent(ctx)
	began := s.read()
	var pool Pool
	// Newcomers rely on this look: a clock that is wrong or does not answer prevents the move, not the look.
	patient, cancel := turns.WithTimeout(ctx, s.cfg.Generator.Time, patience(s.cfg.Look))
	here, clockErr, err := s.beside(patient, func() (err error) { pool, err = l.pool(patient); return err })
	cancel()
	if err != nil {
		return 0, errors.Join(err, clockErr)
	}
	t := takeover{worker: l.worker, known: known, open: pool.Open && pool.Life != nil}
	if ask != nil && clockErr == nil {
		t.wish = Ask{Now: tickOf(l.Layout(), s.wall(here)), Window: ask.Window}.fence(-1, l.Layout())
	}
	reg := s.slot(l.worker)
	reg.Patience = patience(s.cfg.Look)
	m, err := s.move(ctx, reg, func(found *Slot) (move, error) {
		now := firn.Tick(0) // a wrong clock does not say that the fence has passed; the program stops there by itself
		if clockErr == nil {
			now = s.latest(here)
		}
		return s.rules.takeOver(t, found, now)
	})
	switch {
	case err != nil:
		return 0, errors.Join(err, clockErr)
	case !m.write:
		return known, clockErr
	case m.life != *pool.Life:
		return 0, errClosed
	case m.after < s.latest(here): // the write was slow
		return 0, errPast
	}
	m.looked = began
	s.hold(m.holding)
	return m.fence, nil
}

// pool reads the record of the pool. One that has vanished is not open.
func (l *Loan) pool(ctx context.Context) (Pool, error) {
	entry, err := l.slots.register(poolKey(l.slots.cfg.Pool)).Read(ctx)
	if err != nil || entry.Revision == 0 {
		return Pool{}, err
	}
	return readRecord(entry)
}

// holding returns the latest holding of this process.
func (l *Loan) holding() (holding, bool) {
	l.slots.mu.Lock()
	defer l.slots.mu.Unlock()
	h, ok := l.slots.held[l.worker]
	return h, ok
}

// ask returns what a member of the pool that starts now would ask for: the program keeps to the same lead.
func (l *Loan) ask() Ask {
	g := l.slots.cfg.Generator
	wall := g.Time.Wall() // read once: the process may be paused between two readings
	reach := tickOf(g.Layout, wall.Add(fencedLead(g)))
	return Ask{Now: tickOf(g.Layout, wall), From: min(reach, math.MaxInt64-1) + 1, Window: l.window}
}
