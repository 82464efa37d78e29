package issuing

import (
	"net/http"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// Identify returns the caller of a request. A connection may keep it: each request checks
// its permissions again.
func (f *Front) Identify(c access.Credentials) (*access.Caller, error) {
	caller, err := f.service.Lookup(c)
	if err != nil {
		return nil, f.Denied(c, err)
	}
	return caller, nil
}

// Caller returns the caller of an HTTP request, for every protocol over HTTP.
func (f *Front) Caller(r *http.Request) (*access.Caller, error) {
	caller, err := f.service.now.Load().access.CallerOf(r)
	if err != nil {
		return nil, f.denied("", r.RemoteAddr, f.protocol.String(), 1, err)
	}
	return caller, nil
}

// Lookup is [Front.Identify] for protocols in which a client may authenticate later: an
// unauthenticated caller is neither counted nor audited. [Front.Denied] does that.
func (s *Service) Lookup(c access.Credentials) (*access.Caller, error) {
	return s.now.Load().access.Identify(c)
}

// Generation changes with every change of the served settings. A protocol with lasting
// connections then identifies its callers again: their credentials may have been revoked.
func (s *Service) Generation() uint64 { return s.now.Load().generation }

// Denied counts and audits a refused caller, and returns the failure for the client.
func (f *Front) Denied(c access.Credentials, err error) *failure.Failure {
	return f.denied("", c.From, f.protocol.String(), 1, err)
}

// Allow returns an error unless the caller may use a name, of a namespace or of something
// else in the store.
func (f *Front) Allow(caller *access.Caller, name string) error {
	_, err := f.allow(f.service.now.Load(), caller, name, 1)
	return err
}

// allow returns the caller with its permissions under the settings in force, if it may use a name.
func (f *Front) allow(now *snapshot, caller *access.Caller, name string, requests int) (*access.Caller, error) {
	caller, err := f.current(now, caller, requests)
	if err != nil {
		return nil, err
	}
	if !caller.May(name) {
		return nil, f.denied(caller.Name(), caller.From(), "namespace "+name, requests, caller.Denied(name))
	}
	return caller, nil
}

// current returns the caller with its permissions under the settings in force. An error means that it was revoked.
func (f *Front) current(now *snapshot, caller *access.Caller, requests int) (*access.Caller, error) {
	known, err := now.access.Current(caller)
	if err != nil {
		return nil, f.denied(caller.Name(), caller.From(), f.protocol.String(), requests, err)
	}
	return known, nil
}
