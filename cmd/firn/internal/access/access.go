// Package access identifies callers and checks what they may do and how fast ([Bucket]); its [Audit] records
// who was denied what.
//
// A [Book] is made from the configuration and replaced with it. Code that keeps a [Caller]
// for longer than a request, such as for a connection, must call [Book.Current] before each
// request: a token that is removed from the configuration then ends at once.
package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// Config says who may do what. It has been checked.
type Config struct {
	Tokens      []Token
	Anonymous   []string // patterns of namespaces that everyone may use, also without a token
	OpenMetrics bool     // metrics are shown to anyone
}

// open reports whether callers on this machine may do anything, since no caller is configured.
func (c Config) open() bool { return len(c.Tokens)+len(c.Anonymous) == 0 }

// Both returns what c and another configuration both allow.
func (c Config) Both(other Config) Config {
	switch {
	case c.open():
		return other
	case other.open():
		return c
	}
	both := Config{Anonymous: common(c.Anonymous, other.Anonymous), OpenMetrics: c.OpenMetrics && other.OpenMetrics}
	for _, t := range c.Tokens {
		i := slices.IndexFunc(other.Tokens, func(o Token) bool {
			return o.Name == t.Name && o.Certificate == t.Certificate && reflect.DeepEqual(o.SHA256, t.SHA256)
		})
		if i < 0 {
			continue
		}
		o := other.Tokens[i]
		t.Namespaces, t.Leases = common(t.Namespaces, o.Namespaces), common(t.Leases, o.Leases)
		t.Admin, t.Unveil, t.MaxLeases = t.Admin && o.Admin, t.Unveil && o.Unveil, min(t.MaxLeases, o.MaxLeases)
		both.Tokens = append(both.Tokens, t)
	}
	if both.open() {
		both.Tokens = []Token{{Name: "none", SHA256: new([sha256.Size]byte)}} // of no secret that is known
	}
	return both
}

// common returns the patterns that are in both lists.
func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(p string) bool { return !slices.Contains(b, p) })
}

// A Token is a caller, identified by its secret or by a certificate with its name.
type Token struct {
	Name        string
	SHA256      *[sha256.Size]byte // of the secret; nil without one
	Certificate string             // a common name or SAN; empty without one
	Namespaces  []string           // patterns, beside those of Config.Anonymous
	Admin       bool               // may look at pools and metrics
	Unveil      bool               // may unveil ids of its namespaces
	Rate        Rate               // zero: no limit
	Leases      []string           // patterns of pools of which it may lease workers
	MaxLeases   int                // of each pool, from one server
}

// Credentials are what a request proves about its caller.
type Credentials struct {
	Token string // the secret; empty without one
	Local bool   // both ends of the connection are on this machine: see [Local]
	// Foreign: a browser sends the request for a page of another origin, which has no part in what the
	// browser proves by itself: its address, its certificate.
	Foreign bool
	// Certificate is the client's, verified against the configured authorities in the
	// handshake; nil without one.
	Certificate *x509.Certificate
	From        string        // the client's address, for the audit log
	Client      *share.Client // has the shares of this address; nil for no limits
}

// A Book has all possible callers. Its methods may be called concurrently.
type Book struct {
	config Config
	// The key of bySecret is a digest of the secret's hash with a salt of this process: a
	// map compares keys byte by byte, so without the salt the time would reveal how much
	// of a stored hash an attempt matches.
	bySecret      map[[sha256.Size]byte]*identity
	salt          [sha256.Size]byte
	byCertificate map[string]*identity
	byName        map[string]*identity
	anonymous     *identity // of callers without credentials; nil if they are refused
	local         *identity // of callers on this machine; nil if tokens or anonymous are configured
}

// An identity is a possible caller.
type identity struct {
	Token     // for callers without a token, only its name and rights are set
	may       patterns
	leases    patterns
	anonymous bool
	bucket    *Bucket // nil without a limit
	order     int     // in the configuration
}

// NewBook returns the book of a checked configuration. The new book continues the rates of
// old that have not changed, with what their callers have used; old may be nil. Now is a
// monotonic clock.
func NewBook(cfg Config, old *Book, now func() time.Duration) *Book {
	b := &Book{
		config:   cfg,
		bySecret: map[[sha256.Size]byte]*identity{}, byCertificate: map[string]*identity{}, byName: map[string]*identity{},
	}
	_, _ = rand.Read(b.salt[:]) // never fails
	for i, t := range cfg.Tokens {
		// Namespaces open to all need no token, so a token must not lose them.
		id := &identity{Token: t, may: newPatterns(slices.Concat(t.Namespaces, cfg.Anonymous)), leases: newPatterns(t.Leases), order: i, bucket: old.bucket(t)}
		if id.bucket == nil && !t.Rate.IsZero() {
			id.bucket = NewBucket("token "+t.Name, t.Rate, now)
		}
		b.byName[t.Name] = id
		if t.SHA256 != nil {
			b.bySecret[b.salted(*t.SHA256)] = id
		}
		if t.Certificate != "" {
			b.byCertificate[t.Certificate] = id
		}
	}
	switch {
	case len(cfg.Anonymous) > 0:
		b.anonymous = &identity{Token: Token{Name: anonymous}, may: newPatterns(cfg.Anonymous), anonymous: true}
	case len(cfg.Tokens) == 0:
		b.local = &identity{Token: Token{Name: "local", Admin: true, Unveil: true, MaxLeases: DefaultLeases}, may: patterns{all: true}, leases: patterns{all: true}}
	}
	return b
}

const anonymous = "anonymous"

// DefaultLeases is how many workers of a pool a caller may lease from one server.
const DefaultLeases = 64

// bucket returns the bucket of a token whose name and rate have not changed.
func (b *Book) bucket(t Token) *Bucket {
	if b == nil {
		return nil
	}
	if id := b.byName[t.Name]; id != nil && id.bucket != nil && id.bucket.Rate() == t.Rate {
		return id.bucket
	}
	return nil
}

func (b *Book) salted(sum [sha256.Size]byte) [sha256.Size]byte {
	var both [2 * sha256.Size]byte
	copy(both[:], b.salt[:])
	copy(both[sha256.Size:], sum[:])
	return sha256.Sum256(both[:])
}

// Config returns the configuration of the book.
func (b *Book) Config() Config { return b.config }

// OpenMetrics reports whether metrics are shown to anyone.
func (b *Book) OpenMetrics() bool { return b.config.OpenMetrics }

// Identify returns the caller with these credentials. A wrong token is an error even where
// no token is needed. If no tokens are configured at all, it ignores the token.
func (b *Book) Identify(c Credentials) (*Caller, error) {
	p := proof{Credentials: c, secret: c.Token != ""}
	if p.Token = ""; p.secret {
		p.sum = sha256.Sum256([]byte(c.Token))
	}
	return b.identify(p)
}

func (b *Book) identify(p proof) (*Caller, error) {
	id, err := b.find(p)
	if err != nil {
		return nil, err
	}
	return &Caller{book: b, is: id, proof: p}, nil
}

func (b *Book) find(p proof) (*identity, error) {
	if p.secret && len(b.config.Tokens) > 0 {
		id := b.bySecret[b.salted(p.sum)]
		// The map lookup has compared salted digests already; this does not rely on them.
		if id == nil || subtle.ConstantTimeCompare(id.SHA256[:], p.sum[:]) != 1 {
			return nil, unauthorized("the token is not known here: it was never in the configuration, or was taken out of it")
		}
		return id, nil
	}
	if p.Foreign && b.local == nil {
		return nil, unauthorized("a browser sent this request for a page of another origin: such a request needs a token in its own header, as pages may not use up ids on behalf of their visitors")
	}
	if p.Certificate != nil {
		if id := b.certified(p.Certificate); id != nil {
			if now := time.Now(); now.After(p.Certificate.NotAfter) {
				return nil, unauthorized("the certificate of %s ended on %s", id.Name, p.Certificate.NotAfter.UTC().Format(time.RFC3339))
			}
			return id, nil
		}
	}
	switch {
	case b.anonymous != nil:
		return b.anonymous, nil
	case b.local != nil && p.Local:
		return b.local, nil
	case b.local != nil:
		return nil, unauthorized("the server serves only callers on its own machine (under the name localhost or 127.0.0.1, without a proxy, and not for web pages of other origins) as long as its configuration names no others: " +
			"it needs tokens (firn token makes one), or anonymous: [\"*\"] for everyone")
	case p.Certificate != nil:
		return nil, unauthorized("no token in the configuration has the certificate of %q", p.Certificate.Subject.CommonName)
	}
	return nil, unauthorized("a token is needed: Authorization: Bearer TOKEN over HTTP, AUTH TOKEN over the Redis protocol")
}

// certified returns the first identity in the configuration that has a name of a
// certificate.
func (b *Book) certified(c *x509.Certificate) (found *identity) {
	look := func(name string) {
		if id := b.byCertificate[name]; name != "" && id != nil && (found == nil || id.order < found.order) {
			found = id
		}
	}
	if len(b.byCertificate) == 0 {
		return nil
	}
	look(c.Subject.CommonName)
	for _, name := range c.DNSNames {
		look(name)
	}
	for _, uri := range c.URIs {
		look(uri.String())
	}
	return found
}

// Current returns the caller as this book knows it: the same one if the book has not been
// replaced since. An error means that the caller was revoked.
func (b *Book) Current(c *Caller) (*Caller, error) {
	if b.Knows(c) {
		return c, nil
	}
	return b.identify(c.proof)
}

func unauthorized(format string, args ...any) error {
	return failure.New(http.StatusUnauthorized, "unauthorized", format, args...)
}

// Knows reports whether the caller was identified with this book, by credentials that are
// still valid.
func (b *Book) Knows(c *Caller) bool {
	return c.book == b && (c.proof.Certificate == nil || !time.Now().After(c.proof.Certificate.NotAfter))
}
