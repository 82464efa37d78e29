package lease

import "time"

// endsSoon is how long before a layout runs out of time its users are warned: ids of
// another layout may need a change of what reads them.
const endsSoon = 90 * 24 * time.Hour

// An ending is how near the end of a layout was when it was last told.
type ending int

const (
	endFar ending = iota
	endSoon
	endPassed
)

// tellEnd logs that the layout is about to run out of time, and that it has: each once.
// Renewals do not show it, as the last fence can be moved to where it is for ever. It is
// called by one goroutine at a time.
func (l *Lease) tellEnd() {
	layout := l.cfg.Generator.Layout
	left := layout.End().Sub(l.cfg.Generator.Time.Wall())
	switch {
	case left <= 0 && l.told < endPassed:
		l.told = endPassed
		l.cfg.Log.Error("the layout ran out of time, and no id can be made by it: use another pool, of a layout with more time bits, a longer unit or a later epoch",
			"layout", layout.String(), "end", layout.End())
	case left <= endsSoon && l.told < endSoon:
		l.told = endSoon
		l.cfg.Log.Warn("the layout runs out of time: move to another pool before, of a layout with more time bits, a longer unit or a later epoch",
			"layout", layout.String(), "end", layout.End())
	}
}
