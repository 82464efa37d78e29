package server

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
)

// namespaceState is a namespace as the interface shows it.
type namespaceState struct {
	Namespace string    `json:"namespace"`
	Kind      string    `json:"kind"`
	Pool      string    `json:"pool"`
	Layout    string    `json:"layout"`
	Clock     string    `json:"clock"`
	Worker    int64     `json:"worker"`
	Fence     firn.Tick `json:"fence,string"`
	Until     time.Time `json:"until"`
	Left      float64   `json:"fence_seconds"`
	Renewals  int64     `json:"renewals"`
	Losses    int64     `json:"losses"`
	Error     string    `json:"error,omitempty"` // of the latest exchange with the store
}

func (n *namespace) state() namespaceState {
	s := n.pool.lease.State()
	state := namespaceState{
		Namespace: n.name, Kind: "snowflake", Pool: n.pool.name, Layout: decode.Label(n.pool.layout),
		Clock: n.pool.clock.String(), Worker: s.Worker, Fence: s.Fence, Until: s.Until,
		Left: s.Left.Seconds(), Renewals: s.Renewals, Losses: s.Losses,
	}
	if s.Last != nil {
		state.Error = s.Last.Error()
	}
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
