package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
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

// doubtful looks for presets if a time is implausible by the default layout: ids of Firn are neither from its first day
// nor from the future. Other layouts were chosen by the user.
func doubtful(r decode.Result, l firn.Layout, now time.Time) (d doubt) {
	const day = 24 * time.Hour
	if l != firn.DefaultLayout() || r.Time.After(l.Epoch().Add(day)) && r.Time.Before(now.Add(day)) {
		return d
	}
	d.Implausible = true
	for _, g := range decode.Guesses(r.ID, l, now) {
		d.Others = append(d.Others, otherLayout{g.Preset.Name, g.Time, g.Preset.Remark})
	}
	return d
}

// print writes a hint for people.
func (d doubt) print(out io.Writer, p palette) {
	hint := p.paint(yellow, fmt.Sprintf("%-11s", "hint"))
	switch {
	case !d.Implausible:
		return
	case len(d.Others) == 0:
		fmt.Fprintf(out, "%s the time is implausible, also by all presets: is the id of a counter, or veiled? Otherwise give its layout with --layout and --epoch\n", hint)
	default:
		fmt.Fprintf(out, "%s the time is implausible: does the id have another layout?\n", hint)
	}
	for _, o := range d.Others {
		fmt.Fprintf(out, "%-11s %s with --layout %s (%s)\n", "", o.Time.Format(time.RFC3339), o.Layout, o.remark)
	}
}
