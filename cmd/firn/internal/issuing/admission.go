package issuing

import (
	"net/http"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// Identify returns who makes a request. A caller may be kept, as for a connection: Find
// and Issue see to it that what it could do is what it still may.
func (f *Front) Identify(c access.Credentials) (*access.Caller, error) {
	caller, err := f.service.now.Load().access.Identify(c)
	if err != nil {
		return nil, f.denied("", c.From, f.protocol.String(), err)
	}
	return caller, nil
}

// Lookup is Identify for protocols in which a client may say later who it is: that it is
// nobody yet is neither counted nor written down. [Front.Denied] does that.
func (f *Front) Lookup(c access.Credentials) (*access.Caller, error) {
	return f.service.now.Load().access.Identify(c)
}

// Denied counts and writes down that somebody was refused, and returns what they are told.
func (f *Front) Denied(c access.Credentials, err error) *failure.Failure {
	return f.denied("", c.From, f.protocol.String(), err)
}

// DeniedTLS records that a client's certificate was refused in the handshake, if that is
// why it failed.
func (f *Front) DeniedTLS(from string, handshake error) {
	if why := handshake.Error(); access.RefusesCertificate(why) {
		f.service.audit.Denied("", from, "tls", why)
	}
}

// Caller returns who makes an HTTP request, of whatever protocol is spoken over it.
func (f *Front) Caller(r *http.Request) (*access.Caller, error) {
	c, err := access.OfRequest(r)
	if err != nil {
		return nil, f.denied("", c.From, f.protocol.String(), err)
	}
	return f.Identify(c)
}

// Current returns a caller as the settings in force know it; it costs next to nothing
// where they have not changed. An error says that it is no caller any more.
func (f *Front) Current(caller *access.Caller) (*access.Caller, error) {
	now, err := f.service.now.Load().access.Current(caller)
	if err != nil {
		return nil, f.denied(caller.Name(), caller.From(), f.protocol.String(), err)
	}
	return now, nil
}

// denied counts and writes down a request of somebody who may not make it.
func (f *Front) denied(who, from, what string, err error) *failure.Failure {
	told := f.failed("", err)
	f.service.audit.Denied(who, from, what, told.Message)
	return told
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

// Allow returns an error unless the caller may use a name, be it that of a namespace or
// of something else that the store keeps.
func (f *Front) Allow(caller *access.Caller, name string) error { return f.may(caller, name) }

// Admin returns an error unless the caller may do what is for administrators.
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

// Metrics returns an error unless the metrics may be shown to who makes a request.
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
