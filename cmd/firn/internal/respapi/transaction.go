package respapi

import (
	"slices"

	"github.com/firn-id/firn/cmd/firn/internal/resp"
)

// Bounds on the commands between MULTI and EXEC.
const (
	maxQueue      = 4096
	maxQueueBytes = 256 << 10
	// maxQueueArgs bounds the arguments: even empty ones cost memory.
	maxQueueArgs = 4 * maxQueue
)

// A queue holds the commands after MULTI. Client libraries send pipelines this way. Ids need
// no transactions, so other clients' commands may run in between.
type queue struct {
	commands [][][]byte
	bytes    int
	args     int
	broken   bool // EXEC must fail
}

func (c *conn) multi([][]byte) {
	if c.queue != nil {
		// As in Redis, the transaction continues after this error, and after no other.
		broken := c.queue.broken
		c.refuse("ERR MULTI calls can not be nested")
		c.queue.broken = broken
		return
	}
	c.queue = &queue{}
	c.ok()
}

// enqueue keeps a command for EXEC.
func (c *conn) enqueue(args [][]byte) {
	q := c.queue
	q.args += len(args)
	for _, a := range args {
		q.bytes += len(a)
	}
	if len(q.commands) == maxQueue || q.bytes > maxQueueBytes || q.args > maxQueueArgs {
		q.commands = nil
		c.refuse("ERR too many commands after MULTI: 4096, of 16384 arguments and 262144 bytes together, are allowed")
		return
	}
	kept := make([][]byte, len(args))
	for i, a := range args {
		kept[i] = slices.Clone(a)
	}
	q.commands = append(q.commands, kept)
	c.out = resp.AppendSimple(c.out, "QUEUED")
}

func (c *conn) exec([][]byte) {
	q := c.queue
	c.queue = nil
	switch {
	case q == nil:
		c.refuse("ERR EXEC without MULTI")
	case q.broken:
		c.fail("EXECABORT Transaction discarded because of previous errors.")
	default:
		c.out = resp.AppendArray(c.out, len(q.commands))
		for _, args := range q.commands {
			c.one(args)
			if !c.room() {
				return
			}
		}
	}
}

// reject answers a command that cannot be queued. If it is EXEC, the transaction ends, with
// an answer of another kind.
func (c *conn) reject(known *command, kind, why string) {
	if known != nil && known.name == "exec" {
		c.queue = nil
		kind = "EXECABORT Transaction discarded because of: "
	}
	c.fail(kind + why)
}

func (c *conn) discard([][]byte) {
	if c.queue == nil {
		c.refuse("ERR DISCARD without MULTI")
		return
	}
	c.queue = nil
	c.ok()
}
