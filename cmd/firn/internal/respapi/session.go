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
)

// A session is how a client has identified and described itself, and the caller that it is.
type session struct {
	version    protocol
	name       string // CLIENT SETNAME
	library    string // CLIENT SETINFO
	libVersion string
	tracking   bool // CLIENT TRACKING ON

	local                bool              // both ends of the connection are on this machine
	certificate          *x509.Certificate // of the client, verified; nil without one
	token                string            // of the latest AUTH that was accepted
	caller               *access.Caller    // nil: unauthenticated
	denied               error             // why the client is unauthenticated
	unauthenticatedSince time.Time         // since when the client is unauthenticated
	generation           uint64            // of the service when caller was identified
	queue                *queue            // between MULTI and EXEC, else nil
	asked                string            // the namespace of the latest command
}

// identify identifies the client by its credentials so far. An unauthenticated client is
// not a denial yet: most clients authenticate next.
func (c *conn) identify() {
	c.generation = c.server.cfg.Service.Generation()
	caller, err := c.server.cfg.Service.Lookup(c.credentials(c.token))
	if c.denied = err; err != nil {
		if caller = nil; c.caller != nil || c.unauthenticatedSince.IsZero() {
			c.unauthenticatedSince = time.Now()
		}
	}
	c.caller = caller
}

// credentials returns the client's credentials with a token.
func (c *conn) credentials(token string) access.Credentials {
	return access.Credentials{Token: token, Local: c.local, From: c.net.RemoteAddr().String(), Certificate: c.certificate, Client: c.peer}
}

// longestKept bounds the names and secrets that a connection keeps, in bytes: one address may have thousands of idle
// connections. Names of namespaces and the tokens that we make are shorter.
const longestKept = 256

// authenticate identifies the client by a token. After an error the session is unchanged.
func (c *conn) authenticate(token []byte) error {
	if len(token) > longestKept {
		return c.server.front.Refuse(failure.BadRequest("bad_token", "the password has %d bytes, at most %d are allowed: use a token of firn token", len(token), longestKept))
	}
	secret, generation := string(token), c.server.cfg.Service.Generation()
	caller, err := c.server.front.Identify(c.credentials(secret))
	if err != nil {
		return err
	}
	c.token, c.caller, c.generation = secret, caller, generation
	return nil
}

// one answers one command.
func (c *conn) one(args [][]byte) {
	known, ok := c.server.table.find(args[0])
	switch {
	case !ok && crossProtocol(args[0]):
		// An attacker may have made a browser send a form here: do not answer.
		c.server.warnOfHTTP(c.net.RemoteAddr())
		c.end(errHTTP)
		return
	case c.caller == nil && (!ok || !known.unauthenticated):
		_ = c.server.front.Denied(c.credentials(""), c.denied) // the answer is Redis's own
		c.reject(known, "", noAuth)
		return
	case !ok:
		text, refused := c.server.table.refused(args)
		if !refused {
			text = unknownCommand(args)
		}
		c.refuse(text)
		return
	case !known.takes(len(args)) || len(args) > maxArguments:
		text := fmt.Sprintf("wrong number of arguments for '%s' command", known.name)
		if len(args) > maxArguments {
			text += fmt.Sprintf(": it has %d, at most %d are allowed: use several commands", len(args), maxArguments)
		}
		c.count(failure.BadRequest("bad_request", "%s", text))
		c.reject(known, "ERR ", text)
		return
	case c.server.late.Load() && !known.atOnce:
		c.failed(c.server.front.Refuse(errLate))
		return
	case c.queue != nil && !known.atOnce:
		c.enqueue(args)
		return
	}
	known.answer(c, args)
}

// refuse answers an invalid command, and counts it.
func (c *conn) refuse(text string) {
	c.count(failure.BadRequest("bad_request", "%s", text))
	c.fail(text)
}

// count counts a request that failed before it reached a namespace; its answer is Redis's own.
func (c *conn) count(err error) { _ = c.server.front.Refuse(err) }

// fail answers an error.
func (c *conn) fail(text string) {
	if c.queue != nil {
		c.queue.broken = true
	}
	c.out = appendError(c.out, text)
}

// failed answers an error of the service, which has counted it.
func (c *conn) failed(err error) { c.fail(errorText(failure.Of(err))) }

const noAuth = "NOAUTH Authentication required."

// ownError begins the errors that a Redis does not have. It is not ERR: for errors with that word, PHP's extension returns false
// instead of throwing, as for a key that does not exist. A program that counts on from there would make equal ids.
const ownError = "FIRN "

// errorText begins an error with the word by which clients decide what to do.
func errorText(f *failure.Failure) string {
	switch {
	case f.Status == http.StatusUnauthorized:
		return noAuth
	case f.Status == http.StatusForbidden:
		return "NOPERM " + f.Message
	case f.Retry > 0:
		return "TRYAGAIN " + f.Code + ": " + f.Message
	}
	return ownError + f.Code + ": " + f.Message
}

// errLate answers the commands for which a shutdown leaves no time.
var errLate = &failure.Failure{Status: http.StatusServiceUnavailable, Code: "shutting_down", Message: "the server is shutting down: ask another server, or this one later", Retry: time.Second}

// crossProtocol reports whether a word begins a line of an HTTP request, which an attacker
// may have made a browser send. Redis checks this too.
func crossProtocol(word []byte) bool {
	return bytes.EqualFold(word, []byte("post")) || bytes.EqualFold(word, []byte("host:"))
}

// warnOfHTTP warns the operator, at most once a minute.
func (s *Server) warnOfHTTP(remote net.Addr) {
	if _, due := s.warned.Due(time.Since(s.started)); due {
		s.cfg.Log.Warn("closed a connection: the client speaks HTTP on the port of the Redis protocol (HTTP has a port of its own; an attacker may have made a browser connect)", "remote", remote)
	}
}

// shown bounds how much of a command an error repeats.
const shown = 128

func clipped(arg []byte) string { return string(arg[:min(len(arg), shown)]) }

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
