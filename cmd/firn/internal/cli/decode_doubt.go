package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/firn-id/firn"
)

// A doubt says that an id probably has another layout than the default one. The zero value is no doubt.
type doubt struct {
	Implausible bool          `json:"implausible,omitempty"` // the time
	Others      []otherLayout `json:"other_layouts,omitempty"`
}

// otherLayout is a preset by which the id has a plausible time.
type otherLayout struct {
	Layout string    `json:"layout"`
	Time   time.Time `json:"time"`
	remark string
}

const (
	day = 24 * time.Hour
	// early is how long after a preset's epoch it is not offered: any small number has such a time.
	early = 365 * day
)

// doubtful looks for presets if a time is implausible by the default layout: ids of Firn are neither from its first day
// nor from the future. Other layouts were chosen by the user. The preset with the latest time is the first.
func doubtful(id firn.ID, l firn.Layout, now time.Time) (d doubt) {
	if l != firn.DefaultLayout() {
		return d
	}
	timeBy := func(l firn.Layout, early time.Duration) (at time.Time, plausible bool) {
		p, err := l.Decompose(id)
		at = l.Time(p.Tick)
		return at, err == nil && at.After(l.Epoch().Add(early)) && at.Before(now.Add(day))
	}
	if _, plausible := timeBy(l, day); plausible {
		return d
	}
	d.Implausible = true
	known := map[firn.Layout]bool{}
	for _, p := range firn.Presets() {
		if at, ok := timeBy(p.Layout, early); ok && !known[p.Layout] {
			known[p.Layout] = true // the presets leaf and twitter are one layout
			d.Others = append(d.Others, otherLayout{p.Name, at, p.Remark})
		}
	}
	slices.SortStableFunc(d.Others, func(a, b otherLayout) int { return b.Time.Compare(a.Time) })
	return d
}

// print writes a hint for people.
func (d doubt) print(out io.Writer, p palette) {
	hint := p.paint(yellow, fmt.Sprintf("%-11s", "hint"))
	switch {
	case !d.Implausible:
		return
	case len(d.Others) == 0:
		fmt.Fprintf(out, "%s the time is implausible, also by all presets: is it the id of a counter, or veiled? Otherwise give its layout with --layout and --epoch\n", hint)
	default:
		fmt.Fprintf(out, "%s the time is implausible: does the id have another layout?\n", hint)
	}
	for _, o := range d.Others {
		fmt.Fprintf(out, "%-11s %s with --layout %s (%s)\n", "", o.Time.Format(time.RFC3339), o.Layout, o.remark)
	}
}
