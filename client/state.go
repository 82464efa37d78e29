package client

import (
	"slices"
	"strings"
	"time"
)

// A State is a snapshot of a client.
type State struct {
	Servers    []ServerState    // in the order in which they are asked
	Namespaces []NamespaceState // by name
}

// A ServerState is what the client knows about a server.
type ServerState struct {
	Server   string
	Up       bool          // it is asked, perhaps after others; if false it is probed
	Down     time.Duration // how long it has been down, 0 if it is up
	Requests int64         // for ids or about namespaces
	Failed   int64         // of these, including those that the caller gave up
	Err      error         // of the latest request or probe, nil if it was good
}

// A NamespaceState is a namespace and its buffer.
type NamespaceState struct {
	Namespace string
	Kind      string        // as a server reported it, "" while not known
	Buffered  int           // ids in the buffer
	Size      int           // ids it should hold at the present demand, 0 before its first use
	Lasts     time.Duration // how long the buffered ids last at the recent demand, at most some 292 years
	Issued    int64         // ids taken out
	Fills     int64         // times it was filled, successful or not
	Waits     int64         // calls that found too few ids in the buffer
	Expired   int64         // ids dropped for their age
	Dropped   int64         // ids dropped for their order
	Err       error         // why the servers gave nothing when they were last asked, nil if they did
}

// State returns a snapshot, for metrics.
func (c *Client) State() State {
	s := State{Servers: c.servers.state(c.cfg.Time.Monotonic())}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.numbers {
		s.Namespaces = append(s.Namespaces, n.State())
	}
	for _, n := range c.texts {
		s.Namespaces = append(s.Namespaces, n.State())
	}
	slices.SortFunc(s.Namespaces, func(a, b NamespaceState) int { return strings.Compare(a.Namespace, b.Namespace) })
	return s
}

// State returns a snapshot of the namespace, for metrics.
func (n *Namespace[T]) State() NamespaceState {
	n.mu.Lock()
	s := NamespaceState{Namespace: n.name, Kind: n.kind.name, Dropped: n.dropped.Load(), Err: n.err}
	n.mu.Unlock()
	if b := n.buf.Load(); b != nil {
		st := b.State()
		s.Buffered, s.Size, s.Lasts, s.Issued = st.Buffered, st.Size, st.Lasts, st.Issued
		s.Fills, s.Waits, s.Expired = st.Fills, st.Waits, st.Expired
	}
	return s
}

func (s *servers) state(now time.Duration) []ServerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]ServerState, len(s.all))
	for i, one := range s.all {
		list[i] = ServerState{Server: one.address, Up: !one.left, Requests: one.requests, Failed: one.failed, Err: one.err}
		if one.left {
			list[i].Down = now - one.since
		}
	}
	return list
}
