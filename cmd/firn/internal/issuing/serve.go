package issuing

import (
	"errors"
	"net/http"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// serve is the path of every request for ids, in whatever form they are taken. It checks the
// caller's current permissions and the rates of token and namespace, handles a
// configuration that comes into force meanwhile, and counts. Take takes up to count ids of
// the namespace that it gets, and returns how many; serve may call it again with another
// namespace. Count is the total of all ids of so many requests, which get the same answer.
func (f *Front) serve(caller *access.Caller, ns *Namespace, requests, count int, take func(*Namespace) (int, error)) error {
	if !f.service.now.Load().access.Knows(caller) {
		// The namespace was found under settings that are no longer in force.
		if err := f.may(caller, ns.name); err != nil {
			return err
		}
		var err error
		if caller, err = f.Current(caller); err != nil {
			return err
		}
	}
	if err := caller.Take(count); err != nil {
		return f.failedAll(ns.name, requests, err)
	}
	if err := ns.admit(count); err != nil {
		caller.Return(count)
		return f.failedAll(ns.name, requests, err)
	}
	issued, err := f.take(ns, take)
	if issued < count { // ids that were not issued do not count
		caller.Return(count - issued)
		ns.giveBack(count - issued)
	}
	if err != nil {
		return f.failedAll(ns.name, requests, err)
	}
	ns.answered[f.protocol].Add(float64(requests))
	ns.issued.Add(float64(issued))
	return nil
}

// take takes ids of a namespace, or of the one that has replaced it: a new configuration
// may have closed it.
func (f *Front) take(ns *Namespace, take func(*Namespace) (int, error)) (issued int, err error) {
	for {
		issued, err = take(ns)
		switch {
		case err == nil:
			return issued, nil
		case !errors.Is(err, firn.ErrClosed):
			return 0, err
		}
		next := f.service.now.Load().namespaces[ns.name]
		switch {
		case next == ns:
			return 0, err // the service has ended
		case next == nil:
			return 0, undeclared(ns.name)
		case next.Numeric() != ns.Numeric():
			// The caller expects ids of the other form, and has checked its request for them.
			changed := failure.New(http.StatusServiceUnavailable, "namespace_changed",
				"namespace %s was changed while the request was under way: ask again", ns.name)
			changed.Retry = time.Second
			return 0, changed
		}
		ns = next
	}
}
