package server

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store"
)

const (
	// endsSoon is how long before a certificate expires the log warns, once every
	// warnEvery.
	endsSoon  = 14 * 24 * time.Hour
	warnEvery = 24 * time.Hour
)

// certificates are the TLS identity of the server. They are read again when their files
// change; open connections keep the identity that they began with.
type certificates struct {
	log     *slog.Logger
	metrics *metrics
	wall    func() time.Time

	current atomic.Pointer[identity]
	mu      sync.Mutex // held while current changes
	at      placer     // of the configuration in force; guarded by mu
	files   watched    // guarded by mu
	failed  failing    // guarded by mu
	warned  time.Time  // of the last warning of expiry; guarded by mu
}

// A failing is the outcome of the last time that the files were read.
type failing struct {
	err    error             // nil if they are in force
	digest [sha256.Size]byte // of the files
	looks  int               // number of looks since then
}

// A placer adds the place in the configuration to an error; see [settings.Config.At].
type placer func(err error, keys ...string) error

// An identity is the content of the files at a time.
type identity struct {
	from   settings.TLS
	digest [sha256.Size]byte // of the files, as they were before they were read
	config *tls.Config
	leaf   *x509.Certificate
	found  []store.Finding // what is doubtful about the files
}

func newCertificates(cfg settings.Config, log *slog.Logger, m *metrics, wall func() time.Time) (*certificates, error) {
	c := &certificates{log: log, metrics: m, wall: wall, at: cfg.At}
	id, err := c.read(*cfg.TLS, cfg.At)
	if err != nil {
		return nil, err
	}
	c.replace(id)
	return c, nil
}

// files are the files of an identity.
func files(set settings.TLS) []string {
	all := []string{set.Cert, set.Key}
	if set.ClientCA != "" {
		all = append(all, set.ClientCA)
	}
	return all
}

// over returns the TLS configuration of a listener, with the names of its protocols in ALPN; the protocol of Redis has
// none. Each connection begins with the current identity.
func (c *certificates) over(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			config := c.current.Load().config.Clone()
			config.NextProtos = protocols
			return forConnection(config, hello), nil
		},
	}
}

// read reads the files, and refuses what no client could accept.
func (c *certificates) read(set settings.TLS, at placer) (*identity, error) {
	sum := digest(files(set)...)
	pair, chain, err := readPair(set, at)
	if err != nil {
		return nil, err
	}
	leaf, now := pair.Leaf, c.wall()
	// Without the present time, so that the same fault has the same text each time.
	switch {
	case now.After(leaf.NotAfter):
		return nil, at(fmt.Errorf("%s ended on %s: put a new one in its place, or set the clock right",
			set.Cert, leaf.NotAfter.UTC().Format(time.RFC3339)), "tls", "cert")
	case now.Before(leaf.NotBefore):
		return nil, at(fmt.Errorf("%s begins on %s: wait, or set the clock right",
			set.Cert, leaf.NotBefore.UTC().Format(time.RFC3339)), "tls", "cert")
	}
	found := examineChain(set.Cert, chain, now)
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		CipherSuites: suites,
		Certificates: []tls.Certificate{pair},
	}
	if set.ClientCA != "" {
		authorities, err := readAuthorities(set.ClientCA)
		if err != nil {
			return nil, at(err, "tls", "client_ca")
		}
		found = append(found, examineAuthorities(set.ClientCA, authorities, now)...)
		config.ClientCAs = x509.NewCertPool()
		for _, a := range authorities {
			config.ClientCAs.AddCert(a)
		}
		config.ClientAuth = tls.VerifyClientCertIfGiven
		if set.RequireClient() {
			config.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	return &identity{from: set, digest: sum, config: config, leaf: leaf, found: found}, nil
}

// readPair reads the certificate with its key, and the chain that begins with it.
func readPair(set settings.TLS, at placer) (pair tls.Certificate, chain []*x509.Certificate, err error) {
	cert, err := settings.ReadFile(set.Cert)
	if err == nil {
		chain, err = certificatesIn(set.Cert, cert)
	}
	if err != nil {
		return pair, nil, at(err, "tls", "cert")
	}
	key, err := settings.ReadFile(set.Key)
	if err == nil {
		_, err = blocks(set.Key, key)
	}
	if err != nil {
		return pair, nil, at(err, "tls", "key")
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		return pair, nil, at(fmt.Errorf("cert %s, key %s: %w", set.Cert, set.Key, err), "tls")
	}
	if err := forServers(set.Cert, pair.Leaf); err != nil {
		return pair, nil, at(err, "tls", "cert")
	}
	return pair, chain, nil
}

// suites are those of TLS 1.2 with forward secrecy and authenticated encryption. Go's own choice still has some in CBC mode.
// Those of TLS 1.3 are all of this kind.
var suites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

var errNoCertificates = errors.New("there is no certificate in it, in PEM")

func readAuthorities(file string) ([]*x509.Certificate, error) {
	text, err := settings.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all, err := certificatesIn(file, text)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: %w", file, errNoCertificates)
	}
	return all, err
}

// place sets the configuration that later errors refer to: a new one may name the same
// files in another line.
func (c *certificates) place(at placer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// replace puts other files in force.
func (c *certificates) replace(id *identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files.settle(id.digest)
	c.install(id)
}

func (c *certificates) install(id *identity) {
	c.current.Store(id)
	c.failed = failing{}
	c.metrics.tlsSuccessful.Set(1)
	c.metrics.notAfter.Set(float64(id.leaf.NotAfter.Unix()))
	c.warned = time.Time{}
	for _, f := range id.found {
		c.log.Warn(f.Says, "advice", f.Advice)
	}
	c.warn()
}

// warn logs that the certificate expires soon, and at once when it has expired.
func (c *certificates) warn() {
	id, now := c.current.Load(), c.wall()
	found, end := id.ends(now), id.leaf.NotAfter
	if len(found) == 0 || now.Sub(c.warned) < warnEvery && now.Before(end) == c.warned.Before(end) {
		return
	}
	c.warned = now
	level := slog.LevelWarn
	if found[0].Verdict == store.Bad {
		level = slog.LevelError
	}
	c.log.Log(context.Background(), level, found[0].Says, "cert", id.from.Cert, "not_after", id.leaf.NotAfter.UTC())
}

// ends reports that the certificate has expired, or expires soon.
func (id *identity) ends(now time.Time) []store.Finding {
	f := store.Finding{Subject: "tls", Advice: "put a new one in its place: the server notices"}
	switch left := id.leaf.NotAfter.Sub(now); {
	case left <= 0: // only while the server runs: at its start this is an error
		f.Verdict, f.Says = store.Bad, "the certificate has expired: clients refuse it"
	case left <= endsSoon:
		f.Verdict, f.Says = store.Doubtful, fmt.Sprintf("the certificate expires soon: %s ends on %s", id.from.Cert, id.leaf.NotAfter.UTC().Format(time.RFC3339))
	default:
		return nil
	}
	return []store.Finding{f}
}

// refresh is one look: it reads the files if they have changed, or if they were refused
// retryLooks looks ago, since the cause may have been the clock. Otherwise cause is empty.
// Said reports that the same error of the same files was returned before. After an error
// the old files stay in force.
func (c *certificates) refresh() (cause string, said bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warn()
	c.failed.looks++
	was, now := c.failed, digest(files(c.current.Load().from)...)
	switch {
	case c.files.changed(now):
		cause = "changed"
	case was.err != nil && was.digest == now && was.looks >= retryLooks: // not half of another pair
		cause = triedAgain
	default:
		return "", false, nil
	}
	err = c.renew(now)
	said = err != nil && was.err != nil && was.digest == now && was.err.Error() == err.Error()
	return cause, said, err
}

// reread reads the files, changed or not.
func (c *certificates) reread() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warn()
	now := digest(files(c.current.Load().from)...)
	c.files.changed(now)
	return c.renew(now)
}

// renew reads the files, whose digest is now, and puts them in force.
func (c *certificates) renew(now [sha256.Size]byte) error {
	current := c.current.Load()
	id, err := c.read(current.from, c.at)
	if err != nil {
		err = fmt.Errorf("%w; the certificate until now, which ends on %s, stays in force", err, current.leaf.NotAfter.UTC().Format(time.RFC3339))
		c.failed = failing{err: err, digest: now}
		c.metrics.tlsReloads.WithLabelValues(resultFailed).Inc()
		c.metrics.tlsSuccessful.Set(0)
		return err
	}
	c.metrics.tlsReloads.WithLabelValues(resultOK).Inc()
	c.install(id)
	return nil
}

// digest returns the digest of the content of files. An unreadable file counts too.
func digest(files ...string) [sha256.Size]byte {
	contents := make([][]byte, len(files))
	for i, file := range files {
		var err error
		if contents[i], err = settings.ReadFile(file); err != nil {
			contents[i] = []byte(err.Error())
		}
	}
	return digestOf(contents...)
}

func digestOf(contents ...[]byte) [sha256.Size]byte {
	h := sha256.New()
	for _, content := range contents {
		sum := sha256.Sum256(content)
		h.Write(sum[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// watched reports when the content of files has changed and is complete. A look can find a
// half-written file, so a change counts only when two looks in a row see it. It compares
// content, not modification times: those may be coarse, and do not change when a symbolic
// link in the path is switched to another folder.
type watched struct{ inForce, seen [sha256.Size]byte }

// changed reports, once, that the content is new and was the same at the last look.
func (w *watched) changed(now [sha256.Size]byte) bool {
	twice := now == w.seen
	w.seen = now
	if now == w.inForce || !twice {
		return false
	}
	w.inForce = now
	return true
}

// settle records that this content is known.
func (w *watched) settle(now [sha256.Size]byte) { w.inForce, w.seen = now, now }
