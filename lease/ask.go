package lease

import (
	"math"

	"github.com/firn-id/firn"
)

// An Ask is what a holder requests from a [Source].
type Ask struct {
	Now    firn.Tick // what the holder's clock shows
	From   firn.Tick // the tick that it would issue next; for a new holder, the first that no earlier run on this clock can have used; it may lie past the layout's last tick
	Window firn.Tick // how many ticks beyond From it wants
}

// fence returns how far a grant that begins after a tick should reach, within the layout.
func (a Ask) fence(after firn.Tick, layout firn.Layout) firn.Tick {
	from := max(a.Now, a.From, after+1)
	if from > layout.MaxTick()-a.Window {
		return layout.MaxTick()
	}
	return from + a.Window
}

// at returns the same ask as of now, equally far ahead of the clock.
func (a Ask) at(now firn.Tick, layout firn.Layout) Ask {
	return Ask{Now: now, From: min(a.From+max(now-a.Now, 0), layout.MaxTick()), Window: a.Window}
}

// newAsk returns the ask for another worker: ticks at or after from that no earlier run on this
// clock can have used.
func (l *Lease) newAsk(from firn.Tick) Ask {
	g := &l.cfg.Generator
	wall := g.Time.Wall() // read once: the process may be paused between two readings
	lead := tickOf(g.Layout, wall.Add(g.Lead()))
	most := g.Layout.MaxTick()
	if _, fences := l.source.(fitting); !fences && most < math.MaxInt64 {
		most++ // an earlier life may have used the last tick: nothing is left
	}
	return Ask{Now: tickOf(g.Layout, wall), From: max(from, min(lead, most-1)+1), Window: l.window}
}

// ask returns the holder's present ask: to continue after its last id, or at the
// present if that is later.
func (l *Lease) ask() Ask {
	now := l.gen.Now() // a call of Now also lets a steady clock that ran ahead return to the wall clock
	if tick, err := l.cfg.Generator.Layout.Tick(l.cfg.Generator.Time.Wall()); err == nil {
		now = tick
	}
	return Ask{Now: now, From: max(l.gen.State().Last+1, now), Window: l.window}
}
