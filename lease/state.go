package lease

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/firn-id/firn"
)

// A State is a snapshot of a lease.
type State struct {
	Worker   int64
	Fence    firn.Tick
	Used     firn.Tick     // the last tick that ids issued so far may carry
	Until    time.Time     // when the tick of the fence has ended
	Left     time.Duration // from the present to the fence: how long the store may be unavailable; 0 once Close has begun
	Renewals int64         // fences moved forward
	Losses   int64         // workers taken by others
	Overlaps int64         // grants whose ticks another was, or may have been, granted too: see [ErrOverlap]
	Switches int64         // workers left for another because the clock went back
	SetBacks int64         // times the store had less of a slot than it had confirmed
	Errors   int64         // exchanges with the store that failed; a loss is not one
	Err      error         // why the latest look failed, or [ErrLost] if it found a loss; nil after one that succeeded; [firn.ErrClosed] once Close has begun
}

// State returns a snapshot.
func (l *Lease) State() State {
	g := l.gen.State()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	s.Worker, s.Fence, s.Used = g.Worker, g.Fence, g.Last
	if l.grant.Worker == g.Worker {
		s.Fence = l.grant.Through
	}
	s.Until = endOf(s.Fence, l.cfg.Generator.Layout)
	s.Left = s.Until.Sub(l.cfg.Generator.Time.Wall())
	if l.traits.SetBacks != nil {
		s.SetBacks = l.traits.SetBacks()
	}
	if l.closing {
		s.Left, s.Err = 0, firn.ErrClosed
	}
	return s
}

func (l *Lease) note(change func(*State)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.state)
}

// failed records a failure. Of several in a row, only those for another reason are logged as warnings.
func (l *Lease) failed(what string, worker int64, err error) { l.fail(what, worker, err, false) }

// fail is failed, and logs a warning in any case if warn is set.
func (l *Lease) fail(what string, worker int64, err error, warn bool) {
	now := l.cfg.Generator.Time.Monotonic()
	l.mu.Lock()
	l.state.Errors++
	level := slog.LevelWarn
	if !l.outage.Fails(err, now) && !warn {
		level = slog.LevelDebug
	}
	l.state.Err = err
	l.mu.Unlock()
	l.cfg.Log.Log(context.Background(), level, "could not "+what, "worker", worker, "error", err)
}

func (l *Lease) fenceTime(g firn.Grant) string {
	return l.cfg.Generator.Layout.Time(g.Through).Format(time.RFC3339Nano)
}

// endsSoon is how long before the end of a layout users are warned: readers of ids may have to change.
const endsSoon = 90 * 24 * time.Hour

// tellEnd logs once that the layout is about to run out of time, and once that it has.
// Renewals do not show this: at the last tick they succeed for ever without moving the fence.
func (l *Lease) tellEnd() {
	layout := l.cfg.Generator.Layout
	switch left := layout.End().Sub(l.cfg.Generator.Time.Wall()); {
	case left > l.warnAt:
	case left > 0:
		l.warnAt = 0
		l.cfg.Log.Warn("the layout runs out of time: move to another pool before, of a layout with more time bits, a longer unit or a later epoch",
			"layout", layout.String(), "end", layout.End())
	default:
		l.warnAt = math.MinInt64
		l.cfg.Log.Error("the layout ran out of time, and no id can be made by it: use another pool, of a layout with more time bits, a longer unit or a later epoch",
			"layout", layout.String(), "end", layout.End())
	}
}
