package register

import (
	"maps"

	"github.com/firn-id/firn/store"
)

// CounterKey returns the key under which a store keeps the counter of a name, of whatever kind: so no name
// is two counters. (A pool's keys are firn/POOL/…, and pool names have no colon.)
func CounterKey(name string) string { return "firn/counter:" + name }

// A Use is the part that the records of all counters have: what the counter is for. An empty field is unknown,
// as in a record that was written by hand, and the next write adds it.
type Use struct {
	Kind string `json:"kind,omitempty"` // "segment" or "sequence"
	store.Form
}

// Over returns what a record of the counter says after a process with use u has written over one with use
// found: what either says. It returns u itself unless found says more. The error is a
// *[store.TakenError] if they differ.
func (u *Use) Over(counter string, found Use) (*Use, error) {
	if found.Kind != "" && found.Kind != u.Kind {
		return nil, &store.TakenError{Counter: counter, What: "kind", Have: found.Kind, Want: u.Kind}
	}
	form, err := u.With(counter, found.Form)
	switch {
	case err != nil:
		return nil, err
	case form.Name == u.Name && maps.Equal(form.Keys, u.Keys):
		return u, nil
	}
	return &Use{Kind: u.Kind, Form: form}, nil
}
