package serial

import (
	"math"
	"time"

	"github.com/firn-id/firn"
)

// A zone lists the offsets from UTC and when each begins. Offsets only grow, so no local
// time repeats, and local times sort as the times in UTC do.
type zone []span

const day = 24 * 60 * 60

type span struct {
	from   int64 // Unix seconds
	offset int64 // seconds
}

// newZone returns the offsets of location within the times of the layout.
func newZone(location *time.Location, l firn.Layout) (zone, error) {
	const what = "zone of serials"
	if location == time.Local {
		return nil, firn.NewSyntaxError(what, location.String(), "it is not the same on all machines; use UTC or another named zone")
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
			return nil, firn.NewSyntaxError(what, location.String(), "its clocks are set back at "+t.UTC().Format(time.RFC3339)+
				", which repeats local times; use UTC or a zone with one offset, from time.FixedZone")
		case int64(offset) > last:
			z = append(z, span{t.Unix(), int64(offset)})
		}
	}
}

// offset returns the offset from UTC at a time in Unix seconds.
func (z zone) offset(unix int64) int64 {
	i := len(z) - 1
	for unix < z[i].from {
		i--
	}
	return z[i].offset
}

// unix returns the time at which local clocks show local, which is in seconds as if it were
// UTC. If ok is false, the clocks were set forward past that time.
func (z zone) unix(local int64) (unix int64, ok bool) {
	i := len(z) - 1
	for local-z[i].offset < z[i].from {
		i--
	}
	unix = local - z[i].offset
	return unix, i == len(z)-1 || unix < z[i+1].from
}
