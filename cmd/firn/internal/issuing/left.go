package issuing

import (
	"cmp"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// A remainder is how many ids a counter has left, of how many: in all, or in a period.
type remainder struct {
	left, of int64
	period   string // year, month or day after which a number begins again; "" for never
}

// maxShown is the most ids left that are worth showing. A float64 has no more of them exactly.
const maxShown = 1 << 53

// few reports whether a person should look: less than a twentieth is left.
func (r remainder) few() bool { return r.left < r.of/20 }

// leftAfter returns what a counter has left above an id, unless that is more than worth showing.
func leftAfter(made base, set settings.Namespace, last firn.ID) (r remainder, ok bool) {
	most, stride := firn.MaxID, firn.ID(1)
	switch made := made.(type) {
	case *segments:
		cfg := set.SegmentConfig()
		most, stride = cmp.Or(cfg.Max, most), firn.ID(max(cfg.Stride, 1))
	case *sequences:
		most = cmp.Or(set.SequenceConfig().Max, most)
	case *businessNumbers:
		return remainder{made.format.Left(last), made.format.PerPeriod(), made.format.Period()}, true
	default:
		return r, false
	}
	r = remainder{left: int64((most - last) / stride), of: int64(most / stride)}
	return r, r.left <= maxShown
}

// left returns what the counter of a namespace has left, as this server last saw it. It knows nothing before the first id.
func (n *Namespace) left() (r remainder, ok bool) {
	switch b := n.base.(type) {
	case *segments:
		s := b.name.State()
		if s.Last >= 0 {
			r, ok = leftAfter(b, n.settings, s.Last)
			r.left += s.Left
		}
	case *sequences:
		if last := b.one.State().Last; last > 0 {
			r, ok = leftAfter(b, n.settings, last)
		}
	case *businessNumbers:
		if last := b.counter.one.State().Last; last > 0 {
			r, ok = leftAfter(b, n.settings, last)
		}
	}
	return r, ok
}
