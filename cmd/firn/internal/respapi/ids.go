package respapi

import (
	"strconv"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/resp"
)

// isIncrement recognizes INCR with its one argument.
func isIncrement(args [][]byte) bool {
	if len(args) != 2 || len(args[0]) != 4 {
		return false
	}
	name := args[0]
	return name[0]|32 == 'i' && name[1]|32 == 'n' && name[2]|32 == 'c' && name[3]|32 == 'r'
}

func (c *conn) incr(args [][]byte) { c.increment(args[1], 1) }

// increment answers INCR, times in a row.
func (c *conn) increment(name []byte, times int) {
	ns := c.numeric(name, times)
	if ns == nil {
		return
	}
	for times > 0 {
		n := min(times, c.server.front.Limit())
		err := c.server.front.IssueEach(c.server.ctx, c.caller, ns, n, &c.batch)
		for _, id := range c.batch.IDs {
			c.out = resp.AppendInt(c.out, int64(id))
		}
		for range n - len(c.batch.IDs) {
			c.failed(err)
		}
		times -= n
	}
}

// numeric returns a namespace whose ids are numbers. Otherwise it answers with an error, as
// many times as times says.
func (c *conn) numeric(name []byte, times int) *issuing.Namespace {
	ns, err := c.server.front.FindBytes(c.caller, name)
	if err == nil && !ns.Numeric() {
		err = c.server.front.Refuse(failure.BadRequest("not_a_number",
			"the ids of namespace %s, of kind %s, are texts: take them with FIRN.NEXT %s", ns.Name(), ns.Kind(), ns.Name()))
	}
	if err == nil {
		return ns
	}
	c.failed(err)
	for range times - 1 { // each is a request that failed
		c.failed(c.server.front.Refuse(err))
	}
	return nil
}

// incrBy answers INCRBY. By 1 it is INCR: some clients send it so.
func (c *conn) incrBy(args [][]byte) {
	count, ok := resp.Int(args[2])
	if !ok || int64(int(count)) != count {
		c.notInteger()
		return
	}
	if count == 1 {
		c.increment(args[1], 1)
		return
	}
	ns, err := c.server.front.FindBytes(c.caller, args[1])
	if err == nil {
		err = c.server.front.Issue(c.server.ctx, c.caller, ns, int(count), &c.row)
	}
	if err != nil {
		c.failed(err)
		return
	}
	c.out = resp.AppendInt(c.out, int64(c.row.IDs[1]))
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
		if count, ok = resp.Int(args[3]); !ok || int64(int(count)) != count {
			c.notInteger()
			return
		}
	}
	ns, err := c.server.front.FindBytes(c.caller, args[1])
	if err == nil {
		err = c.server.front.Issue(c.server.ctx, c.caller, ns, int(count), &c.batch)
	}
	if err != nil {
		c.failed(err)
		return
	}
	batch := &c.batch // the connection may give its memory back
	defer batch.Release()
	c.out = resp.AppendArray(c.out, int(count))
	for _, id := range c.batch.IDs {
		c.out = resp.AppendInt(c.out, int64(id))
		if !c.room() {
			return
		}
	}
	for _, text := range c.batch.Texts {
		c.out = resp.AppendBulk(c.out, text)
		if !c.room() {
			return
		}
	}
}

// room writes a part of a long answer. It reports whether the client still reads.
func (c *conn) room() bool { return len(c.out) < flushAt || c.flush() }

// decode answers FIRN.DECODE.
func (c *conn) decode(args [][]byte) {
	r, err := c.server.front.Decode(c.caller, issuing.DecodeRequest{Namespace: string(args[1]), ID: string(args[2])})
	if err != nil {
		c.failed(err)
		return
	}
	c.out = resp.AppendMap(c.out, c.version, 7)
	number := func(name string, v int64) {
		c.out = resp.AppendInt(resp.AppendBulk(c.out, name), v)
	}
	text := func(name, v string) {
		c.out = resp.AppendBulk(resp.AppendBulk(c.out, name), v)
	}
	text("id", r.ID.String()) // as text: JavaScript is inexact above 2^53
	text("layout", r.Layout)
	text("time", r.Time.Format(time.RFC3339Nano))
	text("tick", strconv.FormatInt(int64(r.Tick), 10))
	number("datacenter", r.Datacenter)
	number("worker", r.Worker)
	number("sequence", r.Sequence)
}
