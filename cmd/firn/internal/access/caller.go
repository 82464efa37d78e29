package access

import (
	"crypto/sha256"
	"fmt"
	"net/http"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// A Caller is the identified sender of a request. All methods may be called concurrently.
type Caller struct {
	book  *Book
	is    *identity
	proof proof
}

// A proof identifies a caller, without the secret itself.
type proof struct {
	Credentials                   // without the token
	secret      bool              // there is one
	sum         [sha256.Size]byte // of the secret
}

// Name returns the name of the caller's token; "anonymous" or "local" without one.
func (c *Caller) Name() string { return c.is.Name }

// From returns the caller's address, as the front end gave it.
func (c *Caller) From() string { return c.proof.From }

// Client returns what has the shares of the caller's address; nil for no limits.
func (c *Caller) Client() *share.Client { return c.proof.Client }

// Token returns the name of the caller's token; "" without one.
func (c *Caller) Token() string {
	if c.is == c.book.anonymous || c.is == c.book.local {
		return ""
	}
	return c.is.Name
}

// Anonymous reports whether the caller has shown nothing that identifies it.
func (c *Caller) Anonymous() bool { return c.is.anonymous }

// May reports whether the caller may use a namespace.
func (c *Caller) May(namespace string) bool { return c.is.may.match(namespace) }

// Admin reports whether the caller may look at pools and metrics.
func (c *Caller) Admin() bool { return c.is.Admin }

// Unveils reports whether the caller may see what a veil hides, of the namespaces that it may use.
func (c *Caller) Unveils() bool { return c.is.Unveil || c.is.Admin }

// Leases returns how many workers of a pool the caller may lease from one server, or a failure.
func (c *Caller) Leases(pool string) (int, error) {
	has := c.is.leases.match(pool)
	return c.is.MaxLeases, c.check(has, fmt.Sprintf("leases: [%q]", pool), fmt.Sprintf("leasing a worker of pool %q", pool))
}

// Bucket returns the bucket of the caller's rate, nil without one.
func (c *Caller) Bucket() *Bucket { return c.is.bucket }

// Denied is the failure of a caller that may not use a namespace. A caller without a token is
// asked for one.
func (c *Caller) Denied(namespace string) error {
	if c.is.anonymous {
		return unauthorized("namespace %q needs a token: Authorization: Bearer TOKEN over HTTP, AUTH TOKEN over the Redis protocol", namespace)
	}
	return failure.New(http.StatusForbidden, "forbidden", "token %s may not use namespace %q: add it to the token's namespaces in the configuration of the server", c.is.Name, namespace)
}

// CheckAdmin returns a failure unless the caller may look at pools and metrics.
func (c *Caller) CheckAdmin(what string) error { return c.check(c.is.Admin, "admin: true", what) }

// CheckUnveil returns a failure unless the caller may unveil ids of the namespaces that it may use. A veil hides
// traffic, also from callers that get ids: so this is a permission of its own.
func (c *Caller) CheckUnveil(namespace string) error {
	return c.check(c.is.Unveil, "unveil: true", fmt.Sprintf("the ids of namespace %q are veiled: unveiling", namespace))
}

// check returns a failure unless the caller has a permission.
func (c *Caller) check(has bool, permission, what string) error {
	switch {
	case has:
		return nil
	case c.is.anonymous:
		return unauthorized("%s needs a token with %s", what, permission)
	}
	return failure.New(http.StatusForbidden, "forbidden", "%s needs a token with %s, which %s does not have", what, permission, c.is.Name)
}
