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
func (f *Front) View(caller *access.Caller, names []string) (v View, release func(), err error) {
	s := f.service
	now := s.now.Load()
	caller, err = f.current(now, caller, 1)
	if err != nil {
		return v, nil, err
	}
	names, more := now.viewed(caller, names)
	client, size := caller.Client(), len(names)*sizeOfState
	if !client.Take(share.Memory, size) {
		return v, nil, f.Refuse(client.Refusal(share.Memory))
	}
	v = View{
		At: time.Now().UTC(), Caller: caller.Name(), Admin: caller.Admin(), Counts: caller.Admin() || now.access.OpenMetrics(),
		Dynamic: now.dynamic != nil, Namespaces: []NamespaceView{}, More: more, Ready: true, Why: s.Lacking(),
	}
	if err := s.Ready(); err != nil {
		v.Ready, v.Why = false, failure.Of(err).Message
	}
	if v.Counts {
		v.Counted, v.Refused = v.At, s.metrics.others.of("")
	}
	cannot := now.unable(slices.Values(names))
	for _, name := range names {
		ns := now.namespaces[name]
		one := NamespaceView{State: ns.state(caller), Able: cannot[name] == nil}
		if v.Counts {
			one.Issued, one.Counts = ns.counted(s.metrics.others.of(name))
		}
		v.Namespaces = append(v.Namespaces, one)
	}
	return v, func() { client.Give(share.Memory, size) }, nil
}

// viewed returns the namespaces of a view, at most MaxViewed, and how many more there are. It does not sort all: there may
// be thousands, and each browser asks each second.
func (s *snapshot) viewed(caller *access.Caller, wanted []string) (names []string, more int) {
	for name := range s.namespaces {
		if !caller.May(name) || len(wanted) > 0 && !slices.Contains(wanted, name) {
			continue
		}
		at, _ := slices.BinarySearch(names, name)
		if len(names) == MaxViewed {
			more++
			if at == MaxViewed {
				continue
			}
			names = names[:MaxViewed-1] // the last one gives way
		}
		names = slices.Insert(names, at, name)
	}
	return names, more
}

// counted returns the ids that were issued, and the requests by code.
func (n *Namespace) counted(failed Requests) (issued int64, by Requests) {
	ok := int64(0)
	for _, answered := range n.answered {
		ok += valueOf(answered)
	}
	if ok > 0 {
		if failed == nil {
			failed = Requests{}
		}
		failed["ok"] += ok
	}
	return valueOf(n.issued), failed
}

func valueOf(c prometheus.Counter) int64 {
	var m dto.Metric
	_ = c.Write(&m) // no counter fails
	return int64(m.GetCounter().GetValue())
}

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

// hides reports whether a veil hides worker, time and traffic from a caller.
func (n *Namespace) hides(caller *access.Caller) bool { return n.cipher != nil && !caller.Unveils() }

// state returns the current state, as a caller may see it. Only an administrator sees the
// store's own error text, which may contain its address. A veil hides worker, time and
// traffic, and so do the fields about these.
func (n *Namespace) state(caller *access.Caller) State {
	s := State{Namespace: n.name, Kind: n.Kind(), Prefix: n.settings.Prefix}
	n.base.state(&s)
	if n.cipher != nil {
		s.Veil = n.cipher.String()
		if n.hides(caller) {
			s.LeaseState, s.Segment, s.Sequence = nil, nil, nil
		}
	}
	switch {
	case s.err == nil:
	case caller.Admin():
		s.Error = s.err.Error()
	case n.hides(caller):
		s.Error = failure.Veiled(s.err).Message
	default:
		s.Error = failure.Public(s.err)
	}
	return s
}
