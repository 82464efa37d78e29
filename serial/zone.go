package serial

import (
	"math"
	"time"

	"github.com/firn-id/firn"
)

// A zone is how far the clock is ahead of UTC from which moment on; offsets
// only grow, so that no local time comes twice and local times sort as moments do.
type zone []span

const day = 24 * 60 * 60

type span struct {
	from   int64 // Unix seconds
	offset int64 // seconds
}

// newZone returns what of location lies within the times of the layout.
func newZone(location *time.Location, l firn.Layout) (zone, error) {
	const what = "zone of serials"
	if location == time.Local {
		return nil, firn.NewSyntaxError(what, location.String(), "it is not the same on all machines; name one, UTC is best")
	}
	_, offset := l.Epoch().In(location).Zone()
	z := zone{{math.MinInt64, int64(offset)}}
	for t := l.Epoch(); ; {
		last := z[len(z)-1].offset
		if last <= -day || last >= day {
			return nil, firn.NewRangeError("offset in seconds", last, 1-day, day-1, what+" "+location.String())
		}
		_, t = t.In(location).ZoneBounds()
		if t.IsZero() || !t.Before(l.End()) || t.Unix() >= endOfYears || t.Year() > lastYear {
			return z, nil
		}
		switch _, offset := t.Zone(); {
		case int64(offset) < last:
			return nil, firn.NewSyntaxError(what, location.String(), "it sets its clock back at "+t.UTC().Format(time.RFC3339)+
				", when local times repeat; use UTC or one offset for all times, as time.FixedZone gives")
		case int64(offset) > last:
			z = append(z, span{t.Unix(), int64(offset)})
		}
	}
}

// offset returns how far the clock is ahead at a moment in Unix seconds.
func (z zone) offset(unix int64) int64 {
	i := len(z) - 1
	for unix < z[i].from {
		i--
	}
	return z[i].offset
}

// unix returns when the clock shows local, in seconds as if it were UTC; not ok
// if it never does, since it was set forward past it.
func (z zone) unix(local int64) (unix int64, ok bool) {
	i := len(z) - 1
	for local-z[i].offset < z[i].from {
		i--
	}
	unix = local - z[i].offset
	return unix, i == len(z)-1 || unix < z[i+1].from
}
