package respapi

import (
	"fmt"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

func (c *conn) incr(args [][]byte) { c.increment(args[1], 1) }

// increment answers INCR, times in a row, at most the limit of a batch.
func (c *conn) increment(name []byte, times int) {
	err := c.server.front.IssueEach(c.ctx, c.caller, c.namespace(name), times, &c.batch)
	for _, id := range c.batch.IDs {
		c.out = appendInt(c.out, int64(id))
	}
	for range times - len(c.batch.IDs) {
		c.failedFor(name, err)
	}
}

// namespace returns a name as a string, without an allocation where the command before had the
// same name or the namespace exists.
func (c *conn) namespace(name []byte) string {
	if len(name) > longestKept {
		return string(name) // no namespace: an idle connection must not hold it
	}
	if c.asked != string(name) {
		c.asked = c.server.cfg.Service.Name(name)
	}
	return c.asked
}

// incrBy answers INCRBY. By 1 it is INCR: some clients send it so.
func (c *conn) incrBy(args [][]byte) {
	count, ok := parseInt(args[2])
	if !ok || int64(int(count)) != count {
		c.notInteger()
		return
	}
	switch {
	case count == 1:
		c.increment(args[1], 1)
		return
	case count < 0: // getAndDecrement and its like
		c.refuse(unsupported(args, c.server.table.refusals["decrby"]))
		return
	case count == 0: // some read a counter so
		c.refuse(unsupported(args, c.server.table.refusals["get"]))
		return
	}
	if _, err := c.server.front.Issue(c.ctx, c.caller, issuing.Ask{Namespace: c.namespace(args[1]), Count: int(count)}, &c.row); err != nil {
		c.failedFor(args[1], err)
		return
	}
	c.out = appendInt(c.out, int64(c.row.IDs[1]))
}

// next answers FIRN.NEXT.
func (c *conn) next(args [][]byte) {
	count := int64(1)
	if len(args) > 2 {
		if len(args) != 4 || !is(args[2], "count") {
			c.refuse("ERR syntax error: write FIRN.NEXT name, or FIRN.NEXT name COUNT n")
			return
		}
		var ok bool
		if count, ok = parseInt(args[3]); !ok || int64(int(count)) != count {
			c.notInteger()
			return
		}
	}
	if _, err := c.server.front.Issue(c.ctx, c.caller, issuing.Ask{Namespace: c.namespace(args[1]), Count: int(count)}, &c.batch); err != nil {
		c.failedFor(args[1], err)
		return
	}
	kept := c.scratch // the connection may give its memory back
	defer func() {
		kept.dropBatch()
		kept.batch.Release()
	}()
	c.out = appendArray(c.out, int(count))
	for _, id := range c.batch.IDs {
		c.out = appendInt(c.out, int64(id))
		if !c.room() {
			return
		}
	}
	for _, text := range c.batch.Texts {
		c.out = appendBulk(c.out, text)
		if !c.room() {
			return
		}
	}
}

// room writes a part of a long answer. It reports whether the client still reads.
func (c *conn) room() bool { return len(c.out) < flushAt || c.flush() }

// decode answers FIRN.DECODE. Ids and ticks are texts: JavaScript is inexact above 2^53.
func (c *conn) decode(args [][]byte) {
	ask := issuing.DecodeRequest{Namespace: string(args[1]), ID: string(args[2])}
	switch {
	case len(args) == 5 && is(args[3], "format"):
		ask.Format = string(args[4])
	case len(args) > 3:
		c.refuse("ERR syntax error: write FIRN.DECODE name id, or FIRN.DECODE name id FORMAT encoding")
		return
	}
	contents, err := c.server.front.Decode(c.caller, ask)
	if err != nil {
		c.failed(err)
		return
	}
	fields := contents.All()
	c.out = appendMap(c.out, c.version, len(fields))
	for _, f := range fields {
		c.out = appendBulk(c.out, f.Name)
		switch v := f.Value.(type) {
		case int64:
			c.out = appendInt(c.out, v)
		case time.Time:
			c.out = appendBulk(c.out, v.Format(time.RFC3339Nano))
		default:
			c.out = appendBulk(c.out, fmt.Sprint(v))
		}
	}
}
