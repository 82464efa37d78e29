package issuing

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// A View is what a caller may see of the service at one moment.
type View struct {
	At         time.Time       `json:"at"` // by the wall clock of the server
	Ready      bool            `json:"ready"`
	Why        string          `json:"why,omitempty"` // why it is not ready, or which namespaces cannot issue
	Caller     string          `json:"caller"`
	Admin      bool            `json:"admin"`
	Counts     bool            `json:"counts"`           // the caller may see what the namespaces have issued
	Counted    time.Time       `json:"counted,omitzero"` // when that was counted
	Dynamic    bool            `json:"dynamic"`          // namespaces are made on first use
	Namespaces []NamespaceView `json:"namespaces"`
	More       int             `json:"more"`              // namespaces that were left out
	Refused    Requests        `json:"refused,omitempty"` // requests that did not come to a namespace
}

// A NamespaceView is a namespace in a [View].
type NamespaceView struct {
	State
	Able   bool     `json:"able"`             // it can issue, as far as is known
	Issued int64    `json:"issued"`           // ids
	Counts Requests `json:"counts,omitempty"` // nil if the caller may not see them
}

// Requests are numbers of requests by code: ok, or that of the error.
type Requests map[string]int64

// MaxViewed bounds the namespaces of a [View].
const MaxViewed = 100

// View returns what the caller may see: of the named namespaces, or of the first ones that it may use. As a list it counts
// as memory of the client until release. An error means that the caller was revoked, or has its share of memory.
//
// What a namespace has issued is traffic. So a caller sees it if it may see the metrics, or what a veil hides where there
// is one.
func (r Reader) View(caller *access.Caller, names []string) (v View, release func(), err error) {
	s := r.front.service
	now := s.now.Load()
	caller, err = r.front.current(now, caller, 1)
	if err != nil {
		return v, nil, err
	}
	names, more := now.viewed(caller, names)
	client, size := caller.Client(), len(names)*sizeOfState
	if !client.Take(share.Memory, size) {
		return v, nil, r.front.Refuse(client.Refusal(share.Memory))
	}
	v = View{
		At: time.Now().UTC(), Caller: caller.Name(), Admin: caller.Admin(), Counts: caller.Admin() || now.access.OpenMetrics(),
		Dynamic: now.dynamic != nil, Namespaces: []NamespaceView{}, More: more, Ready: true, Why: s.Lacking(),
	}
	if err := s.Ready(); err != nil {
		v.Ready, v.Why = false, failure.Of(err).Message
	}
	var counted map[string]*counts
	if v.Counts {
		latest := s.counted()
		counted, v.Counted = latest.by, latest.at.UTC()
		if c := counted[""]; c != nil {
			v.Refused = c.requests
		}
	}
	cannot := now.unable(slices.Values(names))
	for _, name := range names {
		one := NamespaceView{State: now.namespaces[name].state(caller), Able: cannot[name] == nil}
		if c := counted[name]; c != nil {
			one.Issued, one.Counts = c.issued, c.requests
		}
		v.Namespaces = append(v.Namespaces, one)
	}
	return v, func() { client.Give(share.Memory, size) }, nil
}

// viewed returns the namespaces of a view, at most MaxViewed, and how many more there are.
func (s *snapshot) viewed(caller *access.Caller, wanted []string) (names []string, more int) {
	for name := range s.namespaces {
		if caller.May(name) && (len(wanted) == 0 || slices.Contains(wanted, name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	kept := min(len(names), MaxViewed)
	return names[:kept], len(names) - kept
}

// counts is what was counted of a namespace.
type counts struct {
	issued   int64
	requests Requests
}

// countsLast is how long one look at the counters serves all views: they have a series for each namespace and protocol.
const countsLast = 500 * time.Millisecond

// A look is one at the counters.
type look struct {
	at time.Time
	by map[string]*counts // by namespace; "" has the requests that did not come to one. Never changed
}

// counted returns what was counted, at most countsLast old.
func (s *Service) counted() look {
	s.looking.Lock()
	defer s.looking.Unlock()
	if time.Since(s.looked.at) >= countsLast {
		s.looked = look{time.Now(), s.metrics.counts()}
	}
	return s.looked
}

func (m *metrics) counts() map[string]*counts {
	by := map[string]*counts{}
	of := func(name string) *counts {
		c := by[name]
		if c == nil {
			c = &counts{requests: Requests{}}
			by[name] = c
		}
		return c
	}
	each(m.issued, func(labels map[string]string, n int64) { of(labels["namespace"]).issued = n })
	each(m.requests, func(labels map[string]string, n int64) {
		if n > 0 {
			of(labels["namespace"]).requests[labels["code"]] += n
		}
	})
	return by
}

// each calls do for each series of a vector.
func each(of *prometheus.CounterVec, do func(labels map[string]string, n int64)) {
	series := make(chan prometheus.Metric)
	go func() {
		defer close(series)
		of.Collect(series)
	}()
	for one := range series {
		var m dto.Metric
		if one.Write(&m) != nil {
			continue // no counter fails
		}
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		do(labels, int64(m.GetCounter().GetValue()))
	}
}
