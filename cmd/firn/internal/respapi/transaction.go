package respapi

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// Bounds on the commands between MULTI and EXEC.
const (
	maxQueue      = 4096
	maxQueueBytes = 256 << 10
	// maxQueueArgs bounds the arguments: even empty ones cost memory.
	maxQueueArgs = 4 * maxQueue
	// defaultTransactionTimeout is long enough for a person who types, and for any program.
	defaultTransactionTimeout = 20 * time.Second
)

// A queue holds the commands after MULTI. Client libraries send pipelines this way. Ids need
// no transactions, so other clients' commands may run in between.
type queue struct {
	since    time.Time
	commands []byte // each as the number of its arguments, and each argument after its length
	count    int
	bytes    int
	args     int
	ids      int64  // that FIRN.NEXT is to return
	broken   bool   // EXEC must fail
	why      string // why the server gave the transaction up; empty if it did not
}

func (c *conn) multi([][]byte) {
	if c.queue != nil {
		// As in Redis, the transaction continues after this error, and after no other.
		broken := c.queue.broken
		c.refuse("ERR MULTI calls can not be nested")
		c.queue.broken = broken
		return
	}
	c.queue = &queue{since: time.Now()}
	c.ok()
}

// enqueue keeps a command for EXEC. Of a transaction that must fail it keeps nothing.
func (c *conn) enqueue(args [][]byte) {
	q := c.queue
	if q.broken {
		c.out = appendSimple(c.out, "QUEUED")
		return
	}
	q.count++
	q.args += len(args)
	for _, a := range args {
		q.bytes += len(a)
	}
	if q.count > maxQueue || q.bytes > maxQueueBytes || q.args > maxQueueArgs {
		c.forgetQueue()
		c.refuse("ERR too many commands after MULTI: 4096, of 16384 arguments and 262144 bytes together, are allowed")
		return
	}
	if batch := int64(c.server.front.Limits().MaxBatch()); asked(args) > batch-q.ids {
		c.forgetQueue()
		c.failed(c.server.front.Refuse(failure.New(http.StatusRequestEntityTooLarge, "batch_too_large",
			"the commands after MULTI ask for more than %d ids, the limit of one answer: use several transactions, or none, since ids need none", batch)))
		return
	}
	q.ids += asked(args)
	before := cap(q.commands)
	q.commands = binary.AppendUvarint(q.commands, uint64(len(args)))
	for _, a := range args {
		q.commands = append(binary.AppendUvarint(q.commands, uint64(len(a))), a...)
	}
	if grown := cap(q.commands) - before; grown > 0 && !c.peer.Take(share.Memory, grown) {
		q.commands = q.commands[:0:before]
		c.forgetQueue()
		c.failed(c.server.front.Refuse(c.peer.Refusal(share.Memory)))
		return
	}
	c.out = appendSimple(c.out, "QUEUED")
}

// asked returns how many ids the answer of a command is to have, if the command says so.
func asked(args [][]byte) int64 {
	if len(args) != 4 || !is(args[0], "firn.next") {
		return 0
	}
	n, _ := parseInt(args[3])
	return max(n, 0)
}

// forgetQueue frees the memory of the commands after MULTI.
func (c *conn) forgetQueue() {
	if q := c.queue; q != nil {
		c.peer.Give(share.Memory, cap(q.commands))
		q.commands = nil
	}
}

// endQueue ends a transaction.
func (c *conn) endQueue() {
	c.forgetQueue()
	c.queue = nil
}

// expireQueue gives up a transaction that stays open too long: a client must not occupy the memory for ever.
func (c *conn) expireQueue(now time.Time) {
	q := c.queue
	if q == nil || q.why != "" || now.Before(q.since.Add(c.server.cfg.TransactionTimeout)) {
		return
	}
	c.forgetQueue()
	q.broken = true
	q.why = fmt.Sprintf("it was open for more than %v: send its commands together. Ids need no transactions", c.server.cfg.TransactionTimeout)
}

func (c *conn) exec([][]byte) {
	q := c.queue
	switch {
	case q == nil:
		c.refuse("ERR EXEC without MULTI")
	case q.broken && q.why != "":
		c.endQueue()
		c.refuse("EXECABORT Transaction discarded because " + q.why)
	case q.broken:
		c.endQueue()
		c.fail("EXECABORT Transaction discarded because of previous errors.")
	default:
		c.queue = nil // its commands are answered now
		defer c.peer.Give(share.Memory, cap(q.commands))
		c.out = appendArray(c.out, q.count)
		var args [][]byte
		for rest := q.commands; len(rest) > 0; {
			args, rest = nextQueued(args[:0], rest)
			c.one(args)
			if !c.between() {
				return
			}
		}
	}
}

// nextQueued returns the arguments of the first command in a queue, and the rest.
func nextQueued(args [][]byte, from []byte) (all [][]byte, rest []byte) {
	number := func() int {
		n, size := binary.Uvarint(from)
		from = from[size:]
		return int(n)
	}
	for range number() {
		n := number()
		args = append(args, from[:n:n])
		from = from[n:]
	}
	return args, from
}

// reject answers a command that cannot be queued. If it is EXEC, the transaction ends, with
// an answer of another kind.
func (c *conn) reject(known *command, kind, why string) {
	if known != nil && known.name == "exec" {
		c.endQueue()
		kind = "EXECABORT Transaction discarded because of: "
	}
	c.fail(kind + why)
}

func (c *conn) discard([][]byte) {
	if c.queue == nil {
		c.refuse("ERR DISCARD without MULTI")
		return
	}
	c.endQueue()
	c.ok()
}
