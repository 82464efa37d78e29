package client

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/store"
)

// Config configures [New]. Only Servers is required.
type Config struct {
	// Servers are the addresses of 1 to 64 servers over one store, as "http://10.0.0.1:7070" or
	// "https://ids.example.org/firn". Redirects are not followed.
	Servers []string
	// Token is sent to these servers, as Bearer. Over http, others can read it. Default: no token.
	Token string
	// TLS is for https addresses. It cannot be combined with HTTP. Default: the system's authorities.
	TLS *tls.Config
	// HTTP sends the requests: for a proxy, a transport of your own, traces. Default: the client's own,
	// without a proxy, closed with the client.
	HTTP *http.Client

	// Timeout bounds one request, 1ms to 1m. A server that takes longer is left: with too short a
	// time-out, a busy server is taken for a dead one. Servers fail requests after three quarters of it,
	// so a server whose store hangs is not left. Default: 2s.
	Timeout time.Duration
	// Wait bounds how long a call waits for ids that are not buffered, in addition to its context, 1ms
	// to 1h. Default: 5s.
	Wait time.Duration
	// Buffer configures the buffer of a namespace that is not in Buffers.
	Buffer Buffer
	// Buffers configures the buffers of particular namespaces, by name.
	Buffers map[string]Buffer

	// Hooks are called for metrics. Default: no hooks.
	Hooks Hooks
	// Log records when a server is left and returned to. Default: nothing is logged.
	Log *slog.Logger
	// Time is waited on and read for durations. Default: [firn.SystemTime].
	Time firn.TimeSource
	// Random draws the order of the servers and the length of waits. Default: math/rand/v2.
	Random func() uint64
}

// A Buffer is the settings of a namespace's buffer.
type Buffer struct {
	// Min and Max bound how many ids it holds, 1 to 1,048,576, Min at most Max. Defaults: 100, 100,000.
	Min, Max int
	// Target is how long the buffered ids should last at the recent demand. The buffer is refilled when
	// a quarter is used up, so all servers may be away for three quarters of Target. With a longer
	// Target, ids are older when they are issued and more are lost at Close. 1ms to 24h. Default: 1m.
	Target time.Duration
	// MaxAge drops ids that have been buffered for longer; at least 1ms. It costs Next a reading of the
	// clock. Default: no limit.
	MaxAge time.Duration
	// AnyKind buffers a namespace of any kind, even if the token may not read the kind: then ids are taken as
	// they come, as by AnyOrder. Ids of a sequence are then no longer greater than all that others received before.
	AnyKind bool
	// AnyOrder takes ids as they come. By default, where the kind's ids grow, ids that are not above the
	// one before are dropped, as after a change of servers. Set it for segments if one address is a load
	// balancer in front of several servers: their ranges interleave, and most ids would be dropped.
	AnyOrder bool
}

// Hooks are called as things happen, for metrics: concurrently, in calls of Next and Fetch and in the
// background. They must return soon and must not call Close. [Client.State] counts the buffered ids.
type Hooks struct {
	// Request is called after each request to a server.
	Request func(Request)
	// Server is called when a server is left (err says why) and when it is back (err is nil).
	Server func(server string, err error)
	// Waited is called after a call of Next or Fill that found too few buffered ids, with its error.
	Waited func(namespace string, waited time.Duration, err error)
}

// A Request is one request to a server, answered or not.
type Request struct {
	Server    string
	Namespace string
	Count     int // ids asked for; 0 for a question about the namespace
	Took      time.Duration
	Err       error // nil if the request brought what it asked for
}

const (
	maxServers     = 64
	maxNamespaces  = 10_000
	maxToken       = 4096
	defaultTimeout = 2 * time.Second
	maxTimeout     = time.Minute
	defaultWait    = 5 * time.Second
	maxWait        = time.Hour
	defaultMin     = 100
	defaultMax     = 100_000
	limitMax       = 1 << 20
	defaultTarget  = time.Minute
	maxTarget      = 24 * time.Hour
	maxAge         = math.MaxInt64 / time.Hour * time.Hour // the longest duration, in whole hours
)

// complete fills in the defaults and returns an error for every invalid setting.
func (cfg *Config) complete() error {
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.Wait = cmp.Or(cfg.Wait, defaultWait)
	config.Fill(&cfg.Time, &cfg.Random, &cfg.Log)
	errs := append(cfg.completeServers(),
		config.In("Token", config.Check("length of the token", len(cfg.Token), 0, maxToken, "bytes")),
		config.In("Timeout", config.Check("time-out", cfg.Timeout, time.Millisecond, maxTimeout, "")),
		config.In("Wait", config.Check("wait", cfg.Wait, time.Millisecond, maxWait, "")),
		cfg.Buffer.complete("Buffer"))
	if strings.ContainsFunc(cfg.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		errs = append(errs, config.Mistake("client", "Token", "has characters other than visible ASCII, as a line break at its end: remove them"))
	}
	if cfg.TLS != nil && cfg.HTTP != nil {
		errs = append(errs, config.Mistake("client", "TLS", "is beside Config.HTTP: set only one; the transport of HTTP has a TLSClientConfig of its own"))
	}
	cfg.Buffers = maps.Clone(cfg.Buffers)
	for _, name := range slices.Sorted(maps.Keys(cfg.Buffers)) {
		b, field := cfg.Buffers[name], fmt.Sprintf("Buffers[%q]", name)
		errs = append(errs, config.In(field, checkName(name)), b.complete(field))
		cfg.Buffers[name] = b
	}
	return errors.Join(errs...)
}

// completeServers removes slashes at the ends of the addresses.
func (cfg *Config) completeServers() []error {
	errs := []error{config.In("Servers", config.Check("number of servers", len(cfg.Servers), 1, maxServers, ""))}
	cfg.Servers = slices.Clone(cfg.Servers)
	for i, text := range cfg.Servers {
		address, err := address(text)
		if err == nil && slices.Contains(cfg.Servers[:i], address) {
			err = firn.NewSyntaxError("server address", address, "it is there twice")
		}
		if err != nil {
			errs = append(errs, config.In("Servers", err))
			continue
		}
		cfg.Servers[i] = address
	}
	return errs
}

// address checks one address. Its errors never repeat what may be a password.
func address(text string) (string, error) {
	shown := text
	if strings.Contains(text, "@") {
		shown = "…"
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" {
		return "", firn.NewSyntaxError("server address", shown, "write http://HOST:PORT or https://HOST:PORT, and a path if it has one")
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", firn.NewSyntaxError("server address", shown, "it has a user, a query or a fragment; the token stands in Config.Token")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// checkName refuses a name that cannot be a namespace or part of a path.
func checkName(name string) error {
	if name == "." || name == ".." {
		return firn.NewSyntaxError("namespace name", name, "a path cannot hold it")
	}
	return store.CheckName("namespace", name)
}

// complete fills in the defaults. Field is where b stands in a [Config].
func (b *Buffer) complete(field string) error {
	b.Max = cmp.Or(b.Max, max(defaultMax, min(b.Min, limitMax)))
	b.Min = cmp.Or(b.Min, min(defaultMin, b.Max))
	b.Target = cmp.Or(b.Target, defaultTarget)
	err := errors.Join(
		cmp.Or(config.In(field+".Max", config.Check("most ids", b.Max, 1, limitMax, "")),
			config.In(field+".Min", config.Check("least ids", b.Min, 1, b.Max, ""))),
		config.In(field+".Target", config.Check("target", b.Target, time.Millisecond, maxTarget, "")))
	if b.MaxAge != 0 {
		err = errors.Join(err, config.In(field+".MaxAge", config.Check("max age", b.MaxAge, time.Millisecond, maxAge, "")))
	}
	return err
}
