// Package access says who asks, and what they may.
package access

// Credentials are what a request says about who makes it.
type Credentials struct {
	Token string // the secret; empty without one
	Local bool   // the connection has both its ends on this machine
}

// A Book knows the callers there are.
type Book struct{ anyone *Caller }

// Open returns a book in which everyone may do everything.
func Open() *Book { return &Book{anyone: &Caller{name: "anonymous", all: true}} }

// Identify returns the caller with these credentials.
func (b *Book) Identify(Credentials) (*Caller, error) { return b.anyone, nil }

// A Caller is who makes a request, as far as the server knows. All methods may be
// called concurrently.
type Caller struct {
	name string
	all  bool
}

// Name returns the name of the caller's token, "anonymous" without one.
func (c *Caller) Name() string { return c.name }

// May reports whether the caller may use a namespace.
func (c *Caller) May(_ string) bool { return c.all }
