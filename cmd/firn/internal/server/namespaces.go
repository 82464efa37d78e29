package server

import (
	"maps"
	"net/http"
	"slices"

	"github.com/firn-id/firn"
)

// namespaceState is a namespace as the interface shows it: what its kind has.
type namespaceState struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Pool      string `json:"pool,omitempty"`
	Layout    string `json:"layout,omitempty"`
	Clock     string `json:"clock,omitempty"`
	*leaseState
	Segment  *segmentState  `json:"segment,omitempty"`
	Sequence *sequenceState `json:"sequence,omitempty"`
	Template string         `json:"template,omitempty"`
	Prefix   string         `json:"prefix,omitempty"`
	Veil     string         `json:"veil,omitempty"`
	Error    string         `json:"error,omitempty"` // of the latest exchange with the store
}

type segmentState struct {
	Left    int64   `json:"left,string"`   // ids at hand
	Lasts   float64 `json:"lasts_seconds"` // at the present demand: how long the store may be away
	Step    int64   `json:"step"`
	Ranges  int     `json:"ranges"` // fetched ahead
	Fetches int64   `json:"fetches"`
	Waits   int64   `json:"waits"`
}

type sequenceState struct {
	Last      firn.ID `json:"last"`
	Additions int64   `json:"additions"`
	Issued    int64   `json:"issued"`
	Batch     float64 `json:"calls_per_addition"`
}

func (n *namespace) state() namespaceState {
	state := namespaceState{Namespace: n.name, Kind: n.settings.kind(), Prefix: n.settings.Prefix}
	n.source.state(&state)
	return state
}

func (s *Server) listNamespaces(w http.ResponseWriter, _ *http.Request) error {
	s.mu.RLock()
	all := maps.Clone(s.namespaces)
	s.mu.RUnlock()
	states := []namespaceState{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		states = append(states, all[name].state())
	}
	return answerJSON(w, http.StatusOK, map[string]any{"namespaces": states})
}

func (s *Server) oneNamespace(w http.ResponseWriter, r *http.Request) error {
	ns, err := s.lookup(r.PathValue("namespace"), false)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, ns.state())
}
