package server

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"

	"github.com/firn-id/firn/cmd/firn/internal/share"
)

const (
	// freeHead is how many bytes of the head of a request cost nothing.
	freeHead = 512
	// headCost is how many bytes of memory a byte of a head may become: a field of four bytes is a key, a slice and a string.
	headCost = 40
)

// A guard bounds the memory that the bytes of an HTTP connection occupy before a handler sees a request: the fields of
// unfinished heads, and HTTP/2's own answers, to PINGs for example, that the client does not read.
type guard struct {
	head    atomic.Int64 // bytes since the latest request ended; negative during a request
	charged atomic.Int64 // bytes of memory
	http2   atomic.Bool
	writing sync.Mutex // held during a write
}

// errHead ends a connection whose address has its share of memory in unfinished heads.
var errHead net.Error = headError{}

type headError struct{}

func (headError) Error() string   { return "the address has its share of memory in unfinished requests" }
func (headError) Timeout() bool   { return false }
func (headError) Temporary() bool { return false }

// came charges bytes that were read. It reports whether the client may have them.
func (g *guard) came(b []byte, client *share.Client) bool {
	if g.http2.Load() {
		// Who does not read our answers gets no more of them.
		g.writing.Lock()
		g.writing.Unlock() //nolint:staticcheck // it only waits
		return true
	}
	before := g.head.Load()
	if before < 0 {
		return true
	}
	if before == 0 && bytes.HasPrefix(b, []byte("PRI ")) {
		g.http2.Store(true) // it bounds heads itself
		return true
	}
	over := g.head.Add(int64(len(b))) - max(before, freeHead)
	if over <= 0 {
		return true
	}
	if !client.Take(share.Memory, int(over)*headCost) {
		return false
	}
	g.charged.Add(over * headCost)
	return true
}

// begin ends the charge for a head: its request has begun, or the connection has ended.
func (g *guard) begin(client *share.Client) {
	g.head.Store(-1)
	if n := g.charged.Swap(0); n > 0 {
		client.Give(share.Memory, int(n))
	}
}

// end expects the head of the next request.
func (g *guard) end() { g.head.Store(0) }
