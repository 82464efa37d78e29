package backend

import (
	"fmt"

	"github.com/firn-id/firn/store"
)

// Rescue turns, when it is deferred, the panic of a store's client into an error: see [Panicked].
func Rescue(err *error) {
	if r := recover(); r != nil {
		*err = Panicked(r)
	}
}

// Panicked returns the error for the panic of a store's client. Clients panic over malformed answers, and that
// must not end the process. The outcome of a write is unknown then, as after a lost answer: the server may have
// applied it before it sent that. So the error is one that [store.Unapplied] does not know, whatever the
// panic's value is.
func Panicked(r any) error {
	return fmt.Errorf("%w: malformed answer: the client panicked: %v; find out what answers at the store's address", store.ErrUnavailable, r)
}
