package issuing

import (
	"net/http"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// Identify returns the caller of a request. A connection may keep it: Find and Issue check
// its permissions again each time.
func (f *Front) Identify(c access.Credentials) (*access.Caller, error) {
	caller, err := f.service.now.Load().access.Identify(c)
	if err != nil {
		return nil, f.denied("", c.From, f.protocol.String(), err)
	}
	return caller, nil
}

// Lookup is Identify for protocols in which a client may authenticate later: an
// unauthenticated caller is neither counted nor audited. [Front.Denied] does that.
func (f *Front) Lookup(c access.Credentials) (*access.Caller, error) {
	return f.service.now.Load().access.Identify(c)
}

// Denied counts and audits a refused caller, and returns the failure for the client.
func (f *Front) Denied(c access.Credentials, err error) *failure.Failure {
	return f.denied("", c.From, f.protocol.String(), err)
}

// DeniedTLS audits a handshake that failed because the client's certificate was refused.
// It ignores other errors.
func (f *Front) DeniedTLS(from string, handshake error) {
	if why := handshake.Error(); access.RefusesCertificate(why) {
		f.service.audit.Denied("", from, "tls", why)
	}
}

// Caller returns the caller of an HTTP request, for every protocol over HTTP.
func (f *Front) Caller(r *http.Request) (*access.Caller, error) {
	c, err := access.OfRequest(r)
	if err != nil {
		return nil, f.denied("", c.From, f.protocol.String(), err)
	}
	return f.Identify(c)
}

// Current returns a caller with its permissions under the settings in force. It is cheap if
// the settings have not changed. An error means that the caller was revoked.
func (f *Front) Current(caller *access.Caller) (*access.Caller, error) {
	now, err := f.service.now.Load().access.Current(caller)
	if err != nil {
		return nil, f.denied(caller.Name(), caller.From(), f.protocol.String(), err)
	}
	return now, nil
}

// denied counts and audits a request that its caller may not make.
func (f *Front) denied(who, from, what string, err error) *failure.Failure {
	failed := f.failed("", err)
	f.service.audit.Denied(who, from, what, failed.Message)
	return failed
}

// may returns an error unless the caller may use a namespace now.
func (f *Front) may(caller *access.Caller, name string) error {
	caller, err := f.Current(caller)
	if err != nil {
		return err
	}
	if !caller.May(name) {
		return f.denied(caller.Name(), caller.From(), "namespace "+name, caller.Denied(name))
	}
	return nil
}

// Allow returns an error unless the caller may use a name, of a namespace or of something
// else in the store.
func (f *Front) Allow(caller *access.Caller, name string) error { return f.may(caller, name) }

// Admin returns an error unless the caller is an administrator.
func (f *Front) Admin(caller *access.Caller, what string) error {
	caller, err := f.Current(caller)
	if err != nil {
		return err
	}
	if err := caller.CheckAdmin(what); err != nil {
		return f.denied(caller.Name(), caller.From(), what, err)
	}
	return nil
}

// Metrics returns an error unless the caller of a request may see the metrics.
func (f *Front) Metrics(r *http.Request) error {
	if f.service.now.Load().access.OpenMetrics() {
		return nil
	}
	caller, err := f.Caller(r)
	if err != nil {
		return err
	}
	return f.Admin(caller, "metrics")
}
