package access

import (
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

const (
	// interval is how long repeats of a denial are counted and not written.
	interval = 10 * time.Second
	// maxKinds bounds the distinct denials of an interval, and so the records that a flood
	// of wrong tokens from many addresses makes. Callers whose name is known and others
	// have this bound each, so that denials of one token cannot hide that someone tries
	// tokens, or the other way round.
	maxKinds = 200
	// maxOfOne bounds the distinct denials of one address, as [share.Network] counts them,
	// so that it cannot displace those of others.
	maxOfOne = 50
	// maxText bounds a field: a requested name may be as long as a request.
	maxText = 256
)

// An Audit records who was denied what, and administrative actions. Its methods may be called
// concurrently. Make one with [NewAudit]. Its records are part of the interface: their messages and fields do not change.
//
//	denied   who, from, what, why          and repeated, if records like it were left out
//	done     what, outcome; why on failure
//	omitted  records, from                 denials beyond what one interval may have: how
//	                                       many, and the addresses that most of them came from; of
//	                                       IPv6 the /64 networks
type Audit struct {
	to  *slog.Logger
	now func() time.Duration

	mu      sync.Mutex
	since   time.Duration // when the interval began
	named   places        // of callers whose name is known
	unnamed places
	omitted omitted
}

// places are the records that an interval has room for.
type places struct {
	repeats map[denial]int // how often each was repeated
	kinds   map[string]int // of denials, by network
}

func newPlaces() places { return places{repeats: map[denial]int{}, kinds: map[string]int{}} }

// full reports whether there is no room for another denial from an address.
func (p places) full(network string) bool {
	return len(p.repeats) >= maxKinds || p.kinds[network] >= maxOfOne
}

// A denial has the fields by which two denials are equal.
type denial struct{ who, from, what, why string }

// NewAudit returns a log that writes to a logger; now is a monotonic clock.
func NewAudit(to *slog.Logger, now func() time.Duration) *Audit {
	return &Audit{to: to, now: now, since: now(), named: newPlaces(), unnamed: newPlaces(), omitted: newOmitted()}
}

// Denied records a refused request: its caller ("" if unknown), the address, what was
// requested and why it was refused. For ten seconds after the first, denials that differ
// only in the port are counted.
func (l *Audit) Denied(who, from, what, why string) {
	network := share.Network(from)
	if host, _, err := net.SplitHostPort(from); err == nil {
		from = host // every connection has another port
	}
	d := denial{who, from, failure.Clip(what, maxText), failure.Clip(why, maxText)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	p := l.named
	if who == "" {
		p = l.unnamed
	}
	if n, known := p.repeats[d]; known {
		p.repeats[d] = n + 1
		return
	}
	if p.full(network) {
		l.omitted.add(network)
		return
	}
	p.repeats[d] = 0
	p.kinds[network]++
	l.write(d, 0)
}

// Done records an administrative action and how it ended.
func (l *Audit) Done(what string, err error, details ...any) {
	if err != nil {
		l.to.Warn("done", append([]any{"what", what, "outcome", "failed", "why", err.Error()}, details...)...)
		return
	}
	l.to.Info("done", append([]any{"what", what, "outcome", "ok"}, details...)...)
}

// Flush writes the counts of an interval that is over. Call it regularly: otherwise the
// counts wait for the next denial.
func (l *Audit) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
}

// Close writes the counts that are left.
func (l *Audit) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// turn begins a new interval if the present one is over.
func (l *Audit) turn() {
	if now := l.now(); now-l.since >= interval {
		l.end()
		l.since = now
	}
}

func (l *Audit) end() {
	for _, p := range []places{l.named, l.unnamed} {
		for d, n := range p.repeats {
			if n > 0 {
				l.write(d, n)
			}
		}
	}
	l.named, l.unnamed = newPlaces(), newPlaces()
	if l.omitted.records > 0 {
		l.to.Warn("omitted", "records", l.omitted.records, "from", l.omitted.most())
		l.omitted = newOmitted()
	}
}

func (l *Audit) write(d denial, repeated int) {
	fields := []any{"who", d.who, "from", d.from, "what", d.what, "why", d.why}
	if repeated > 0 {
		fields = append(fields, "repeated", repeated)
	}
	l.to.Warn("denied", fields...)
}

// DeniedTLS records a handshake that failed because the client's certificate was refused. It ignores other errors.
func (l *Audit) DeniedTLS(from, why string) {
	if refusesCertificate(why) {
		l.Denied("", from, "tls", why)
	}
}

// refusesCertificate reports whether a TLS handshake failed because the client's certificate
// was refused or missing. That is a denial. A client that refuses the server's certificate, or
// breaks off the handshake, is not denied. It compares texts of crypto/tls because net/http
// only logs the error's text.
func refusesCertificate(why string) bool {
	return strings.HasPrefix(why, "tls: failed to verify certificate: ") ||
		strings.HasPrefix(why, "tls: failed to parse client certificate: ") ||
		strings.HasPrefix(why, "tls: invalid signature by the client certificate: ") ||
		strings.HasPrefix(why, "tls: client ") && strings.Contains(why, "certificate")
}
