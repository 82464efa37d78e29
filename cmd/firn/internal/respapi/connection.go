package respapi

import (
	"errors"
	"net/http"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// compatible is the version of Redis that clients see; they choose commands by it.
const compatible = "7.0.0"

// auth answers AUTH [user] password. It ignores the user: the token identifies the caller.
func (c *conn) auth(args [][]byte) {
	if len(args) > 3 {
		c.syntaxError()
		return
	}
	if err := c.authenticate(args[len(args)-1]); err != nil {
		c.wrongPassword(err)
		return
	}
	c.ok()
}

// wrongPassword answers a token that was not accepted.
func (c *conn) wrongPassword(err error) {
	if f := failure.Of(err); f.Status != http.StatusUnauthorized {
		c.failed(f)
		return
	}
	c.fail("WRONGPASS invalid username-password pair or user is disabled.")
}

// hello answers HELLO [version [AUTH user password] [SETNAME name]].
func (c *conn) hello(args [][]byte) {
	version := c.version
	if len(args) > 1 {
		v, ok := parseInt(args[1])
		switch {
		case !ok:
			c.refuse("ERR Protocol version is not an integer or out of range")
			return
		case v != int64(resp2) && v != int64(resp3):
			c.refuse("NOPROTO unsupported protocol version")
			return
		}
		version = protocol(v)
	}
	var token, name []byte
	for rest := args[min(len(args), 2):]; len(rest) > 0; {
		switch {
		case is(rest[0], "auth") && len(rest) >= 3:
			token, rest = rest[2], rest[3:]
		case is(rest[0], "setname") && len(rest) >= 2:
			if name, rest = rest[1], rest[2:]; !plain(name) {
				c.badName()
				return
			}
		default:
			c.refuse("ERR Syntax error in HELLO option '" + clipped(rest[0]) + "'")
			return
		}
	}
	if token != nil {
		if err := c.authenticate(token); err != nil {
			c.wrongPassword(err)
			return
		}
	}
	if c.caller == nil {
		c.refuse("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> " +
			"option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	if name != nil {
		c.name = string(name)
	}
	c.version = version
	c.out = appendMap(c.out, c.version, 7)
	text := func(name, v string) { c.out = appendBulk(appendBulk(c.out, name), v) }
	text("server", "firn")
	text("version", compatible)
	c.out = appendInt(appendBulk(c.out, "proto"), int64(c.version))
	c.out = appendInt(appendBulk(c.out, "id"), c.id)
	text("mode", "standalone")
	text("role", "master")
	c.out = appendArray(appendBulk(c.out, "modules"), 0)
}

func (c *conn) ping(args [][]byte) {
	switch len(args) {
	case 1:
		c.out = append(c.out, "+PONG\r\n"...)
	case 2:
		c.out = appendBulk(c.out, args[1])
	default:
		c.refuse("ERR wrong number of arguments for 'ping' command")
	}
}

func (c *conn) echo(args [][]byte) { c.out = appendBulk(c.out, args[1]) }

func (c *conn) selectDB(args [][]byte) {
	switch n, ok := parseInt(args[1]); {
	case !ok:
		c.notInteger()
	case n != 0:
		c.refuse("ERR DB index is out of range")
	default:
		c.ok()
	}
}

var errQuit = errors.New("the client sent QUIT")

func (c *conn) quit([][]byte) {
	c.ok()
	c.end(errQuit)
}

// reset forgets what the client has sent, but keeps what belongs to the connection: the
// certificate, and since when the client is unauthenticated.
func (c *conn) reset([][]byte) {
	fresh := session{version: resp2, local: c.local, certificate: c.certificate}
	if c.caller == nil {
		fresh.unauthenticatedSince = c.unauthenticatedSince
	}
	c.endQueue()
	c.session = fresh
	c.identify()
	c.out = appendSimple(c.out, "RESET")
}
