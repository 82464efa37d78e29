package issuing

import (
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// State is a namespace as clients see it, with the fields of its kind.
type State struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Pool      string `json:"pool,omitempty"`
	Layout    string `json:"layout,omitempty"`
	Clock     string `json:"clock,omitempty"`
	*LeaseState
	Segment  *SegmentState  `json:"segment,omitempty"`
	Sequence *SequenceState `json:"sequence,omitempty"`
	Template string         `json:"template,omitempty"`
	Prefix   string         `json:"prefix,omitempty"`
	Veil     string         `json:"veil,omitempty"`
	Error    string         `json:"error,omitempty"` // of the latest exchange with the store
	err      error          // the source of Error
}

// LeaseState is the state of the pool's worker.
type LeaseState struct {
	Worker   int64     `json:"worker"`
	Fence    firn.Tick `json:"fence,string"`
	Until    time.Time `json:"until"`
	Left     float64   `json:"fence_seconds"`
	Renewals int64     `json:"renewals"`
	Losses   int64     `json:"losses"`
}

// SegmentState is the state of ranges.
type SegmentState struct {
	Left    int64   `json:"left,string"`   // ids in memory
	Lasts   float64 `json:"lasts_seconds"` // how long the ids last at the present demand while the store is away
	Step    int64   `json:"step"`
	Ranges  int     `json:"ranges"` // fetched ahead
	Fetches int64   `json:"fetches"`
	Waits   int64   `json:"waits"`
}

// SequenceState is the state of a counter in the store.
type SequenceState struct {
	Last      firn.ID `json:"last"`
	Additions int64   `json:"additions"`
	Issued    int64   `json:"issued"`
	Batch     float64 `json:"calls_per_addition"`
}

// state returns the current state. Only an administrator sees the store's own error text,
// which may contain its address.
func (n *Namespace) state(admin bool) State {
	s := State{Namespace: n.name, Kind: n.Kind(), Prefix: n.settings.Prefix}
	n.base.state(&s)
	if n.cipher != nil {
		s.Veil = n.cipher.String()
	}
	switch {
	case s.err == nil:
	case admin:
		s.Error = s.err.Error()
	default:
		s.Error = failure.Public(s.err)
	}
	return s
}

func (p *pool) show(state *State) {
	s := p.lease.State()
	state.Pool, state.Layout, state.Clock = p.name, decode.Label(p.layout), p.clock.String()
	state.LeaseState = &LeaseState{
		Worker: s.Worker, Fence: s.Fence, Until: s.Until, Left: s.Left.Seconds(), Renewals: s.Renewals, Losses: s.Losses,
	}
	state.err = s.Last
}
