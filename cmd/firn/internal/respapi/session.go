package respapi

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/resp"
)

// A session is what a client has said about itself, and who that makes it.
type session struct {
	version    resp.Version
	name       string // CLIENT SETNAME
	library    string // CLIENT SETINFO
	libVersion string

	local                bool              // both ends of the connection are on this machine
	certificate          *x509.Certificate // of the client, verified; nil without one
	token                string            // of the latest AUTH that was accepted
	caller               *access.Caller    // nil: unauthenticated
	denied               error             // why the client is unauthenticated
	unauthenticatedSince time.Time         // since when the client is unauthenticated
	generation           uint64            // of the service when caller was identified
	queue                *queue            // between MULTI and EXEC, else nil
}

// identify finds out who the client is by what it has said so far. That it is nobody yet
// is no denial: most clients say who they are next.
func (c *conn) identify() {
	c.generation = c.server.front.Generation()
	caller, err := c.server.front.Lookup(c.credentials(c.token))
	if c.denied = err; err != nil {
		if caller = nil; c.caller != nil || c.unauthenticatedSince.IsZero() {
			c.unauthenticatedSince = time.Now()
		}
	}
	c.caller = caller
}

// credentials are all that is known of the client, with a token.
func (c *conn) credentials(token string) access.Credentials {
	return access.Credentials{Token: token, Local: c.local, From: c.net.RemoteAddr().String(), Certificate: c.certificate}
}

// renew identifies the client again if what is served has changed since: its token may
// have been revoked.
func (c *conn) renew() {
	if c.generation != c.server.front.Generation() {
		c.identify()
	}
}

// authenticate takes a client for whom a token says it is, or leaves everything as it is.
func (c *conn) authenticate(token []byte) error {
	secret, generation := string(token), c.server.front.Generation()
	caller, err := c.server.front.Identify(c.credentials(secret))
	if err != nil {
		return err
	}
	c.token, c.caller, c.generation = secret, caller, generation
	return nil
}

// do answers a command that came run times in a row: more than once only INCR.
func (c *conn) do(args [][]byte, run int) {
	if isIncrement(args) && c.caller != nil && c.queue == nil {
		c.increment(args[1], run)
		return
	}
	for range run {
		c.one(args)
	}
}

// one answers one command.
func (c *conn) one(args [][]byte) {
	known, ok := c.server.table.find(args[0])
	switch {
	case !ok && crossProtocol(args[0]):
		// A browser that was made to send a form here: it is not to be answered.
		c.server.warnOfHTTP(c.net.RemoteAddr())
		c.end(errHTTP)
		return
	case c.caller == nil && (!ok || !known.unauthenticated):
		_ = c.server.front.Denied(c.credentials(""), c.denied) // it is told in words of Redis
		c.reject(known, "", noAuth)
		return
	case !ok:
		c.refuse(unknownCommand(args))
		return
	case !known.takes(len(args)):
		text := fmt.Sprintf("wrong number of arguments for '%s' command", known.name)
		c.count(failure.BadRequest("bad_request", "%s", text))
		c.reject(known, "ERR ", text)
		return
	case c.queue != nil && !known.atOnce:
		c.enqueue(args)
		return
	}
	known.answer(c, args)
}

// refuse answers a command that is wrong in itself, and counts it.
func (c *conn) refuse(text string) {
	c.count(failure.BadRequest("bad_request", "%s", text))
	c.fail(text)
}

// count counts a request that failed before it came to a namespace, and is answered in
// words of Redis.
func (c *conn) count(err error) { _ = c.server.front.Refuse(err) }

// fail answers an error.
func (c *conn) fail(text string) {
	if c.queue != nil {
		c.queue.broken = true
	}
	c.out = resp.AppendError(c.out, text)
}

// failed answers an error of the service, which has counted it.
func (c *conn) failed(err error) { c.fail(errorText(failure.Of(err))) }

const noAuth = "NOAUTH Authentication required."

// errorText begins an error with the word that makes clients do the right thing.
func errorText(f *failure.Failure) string {
	switch {
	case f.Status == http.StatusUnauthorized:
		return noAuth
	case f.Status == http.StatusForbidden:
		return "NOPERM " + f.Message
	case f.Retry > 0:
		return "TRYAGAIN " + f.Code + ": " + f.Message
	}
	return "ERR " + f.Code + ": " + f.Message
}

func badProtocol(err error) error { return failure.BadRequest("bad_request", "%v", err) }

// crossProtocol reports what a line of HTTP begins with that somebody may have made a
// browser send, as in Redis.
func crossProtocol(word []byte) bool {
	return bytes.EqualFold(word, []byte("post")) || bytes.EqualFold(word, []byte("host:"))
}

// warnOfHTTP tells the operator, once a minute at most.
func (s *Server) warnOfHTTP(remote net.Addr) {
	now, last := time.Since(s.started)+time.Minute, s.lastWarned.Load()
	if int64(now)-last >= int64(time.Minute) && s.lastWarned.CompareAndSwap(last, int64(now)) {
		s.cfg.Log.Warn("a connection was closed that speaks HTTP to the Redis protocol's port: HTTP has a port of its own; or somebody has made a browser do so", "remote", remote)
	}
}

// shown bounds what an error repeats of a command.
const shown = 128

func unknownCommand(args [][]byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ERR unknown command '%.*s', with args beginning with: ", shown, args[0])
	for rest, left := args[1:], shown; len(rest) > 0 && left > 0; rest = rest[1:] {
		text := rest[0][:min(left, len(rest[0]))]
		fmt.Fprintf(&b, "'%s' ", text)
		left -= len(text) + 3
	}
	return b.String()
}
