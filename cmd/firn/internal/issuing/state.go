package issuing

import (
	"github.com/firn-id/firn/cmd/firn/internal/access"
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
	Error    string         `json:"error,omitempty"` // of the latest exchange with the store, or why no id can be issued
	err      error          // the source of Error
}

// state returns the current state, as a caller may see it. Only an administrator sees the
// store's own error text, which may contain its address. A veil hides worker, time and
// traffic, and so do the fields about these.
func (n *Namespace) state(caller *access.Caller) State {
	s := State{Namespace: n.name, Kind: n.Kind(), Prefix: n.settings.Prefix}
	n.base.state(&s)
	if n.cipher != nil {
		s.Veil = n.cipher.String()
		if !caller.Unveils() {
			s.LeaseState, s.Segment, s.Sequence = nil, nil, nil
		}
	}
	switch {
	case s.err == nil:
	case caller.Admin():
		s.Error = s.err.Error()
	default:
		s.Error = failure.Public(s.err)
	}
	return s
}
