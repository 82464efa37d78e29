package respapi

import (
	"bytes"
	"fmt"
	"time"
)

// client answers CLIENT.
func (c *conn) client(args [][]byte) {
	sub, rest := args[1], args[2:]
	for _, k := range clientCommands {
		if !is(sub, k.name) {
			continue
		}
		if len(rest) < k.least || len(rest) > k.most {
			c.wrongArguments(args)
			return
		}
		k.answer(c, rest)
		return
	}
	c.unknownSubcommand(args)
}

// clientCommands are the subcommands of CLIENT, with the least and most arguments. Some have
// no effect here and are accepted because clients send them when they connect.
var clientCommands = []struct {
	name        string
	least, most int
	answer      func(c *conn, args [][]byte)
}{
	{"setinfo", 2, 2, (*conn).clientSetInfo},
	{"setname", 1, 1, (*conn).clientSetName},
	{"getname", 0, 0, func(c *conn, _ [][]byte) { c.textOrNull(c.name) }},
	{"id", 0, 0, func(c *conn, _ [][]byte) { c.out = appendInt(c.out, c.id) }},
	{"info", 0, 0, (*conn).clientShow},
	{"list", 0, 16, (*conn).clientShow}, // clients must not see other clients
	{"no-evict", 1, 1, (*conn).clientSwitch},
	{"no-touch", 1, 1, (*conn).clientSwitch},
	{"reply", 1, 1, (*conn).clientReply},
	{"tracking", 1, 16, (*conn).clientTracking},
	{"trackinginfo", 0, 0, (*conn).clientTrackingInfo},
	{"caching", 1, 1, (*conn).clientCaching},
	{"getredir", 0, 0, func(c *conn, _ [][]byte) { c.out = appendInt(c.out, c.redirected()) }},
}

func (c *conn) textOrNull(text string) {
	if text == "" {
		c.out = appendNull(c.out, c.version)
		return
	}
	c.out = appendBulk(c.out, text)
}

// maxClientText bounds what a client may say about itself.
const maxClientText = 256

// plain reports whether a text is safe in the line that describes a client.
func plain(text []byte) bool {
	return len(text) <= maxClientText && !bytes.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (c *conn) badName() {
	c.refuse("ERR Client names cannot contain spaces, newlines or special characters.")
}

func (c *conn) clientSetName(args [][]byte) {
	if !plain(args[0]) {
		c.badName()
		return
	}
	c.name = string(args[0])
	c.ok()
}

func (c *conn) clientSetInfo(args [][]byte) {
	if !plain(args[1]) {
		c.refuse("ERR " + clipped(args[0]) + " cannot contain spaces, newlines or special characters.")
		return
	}
	switch {
	case is(args[0], "lib-name"):
		c.library = string(args[1])
	case is(args[0], "lib-ver"):
		c.libVersion = string(args[1])
	default:
		c.refuse("ERR Unrecognized option '" + clipped(args[0]) + "'")
		return
	}
	c.ok()
}

// clientShow answers the line that describes this connection.
func (c *conn) clientShow([][]byte) {
	now := time.Now()
	line := fmt.Sprintf("id=%d addr=%v laddr=%v name=%s age=%d idle=0 db=0 user=%s lib-name=%s lib-ver=%s resp=%d\n",
		c.id, c.net.RemoteAddr(), c.net.LocalAddr(), c.name, int(now.Sub(c.since).Seconds()), c.caller.Name(), c.library, c.libVersion, c.version)
	c.out = appendBulk(c.out, line)
}

func (c *conn) clientSwitch(args [][]byte) {
	if !is(args[0], "on") && !is(args[0], "off") {
		c.syntaxError()
		return
	}
	c.ok()
}

func (c *conn) clientReply(args [][]byte) {
	if !is(args[0], "on") {
		c.refuse("ERR CLIENT REPLY " + clipped(args[0]) + " is not supported: only ON is, since ids must reach the client")
		return
	}
	c.ok()
}

// clientTracking answers CLIENT TRACKING. A client may turn it on, as rueidis does: Firn answers no value that it could keep, so
// no message is ever due. With BCAST each INCR would be one.
func (c *conn) clientTracking(args [][]byte) {
	on := is(args[0], "on")
	if !on && !is(args[0], "off") {
		c.syntaxError()
		return
	}
	for _, option := range args[1:] {
		if !is(option, "optin") && !is(option, "optout") && !is(option, "noloop") {
			c.refuse("ERR CLIENT TRACKING " + clipped(option) + " is not supported: OPTIN, OPTOUT and NOLOOP are")
			return
		}
	}
	c.tracking = on
	c.ok()
}

func (c *conn) clientTrackingInfo([][]byte) {
	state := "off"
	if c.tracking {
		state = "on"
	}
	c.out = appendMap(c.out, c.version, 3)
	c.out = appendSet(appendBulk(c.out, "flags"), c.version, 1)
	c.out = appendBulk(c.out, state)
	c.out = appendInt(appendBulk(c.out, "redirect"), c.redirected())
	c.out = appendArray(appendBulk(c.out, "prefixes"), 0)
}

// redirected returns Redis's number for where messages go: -1 without tracking, 0 for this connection.
func (c *conn) redirected() int64 {
	if c.tracking {
		return 0
	}
	return -1
}

// clientCaching answers what a client sends before a command whose answer it would keep.
func (c *conn) clientCaching(args [][]byte) {
	switch {
	case !is(args[0], "yes") && !is(args[0], "no"):
		c.syntaxError()
	case !c.tracking:
		c.refuse("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	default:
		c.ok()
	}
}
