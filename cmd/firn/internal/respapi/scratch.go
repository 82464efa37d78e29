package respapi

import (
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// scratch is the memory for commands and answers. A connection borrows it while it has
// commands.
type scratch struct {
	in     []byte
	filled int // of in
	out    []byte
	parser parser
	batch  issuing.Batch
	row    issuing.Batch
}

func newScratch() *scratch {
	s := &scratch{in: make([]byte, bufferSize)}
	s.row.Consecutive = true
	return s
}

// space returns the free part of the buffer, at least one byte.
func (c *conn) space() []byte {
	if c.scratch == nil {
		c.scratch, _ = c.server.scratches.Get().(*scratch)
		if c.scratch == nil {
			c.scratch = newScratch()
		}
		c.restore()
	}
	if c.filled == len(c.in) {
		// A parser refuses a command before the buffer is as large as it may become.
		grown := make([]byte, min(4*len(c.in), maxBuffer))
		copy(grown, c.in)
		c.in = grown
	}
	return c.in[c.filled:]
}

// release gives the memory back.
func (c *conn) release() {
	s := c.scratch
	c.scratch = nil
	if s == nil || len(s.in) > bufferSize || cap(s.out) > 2*flushAt {
		return
	}
	s.filled, s.out = 0, s.out[:0]
	s.dropBatch()
	s.parser.reset()
	c.server.scratches.Put(s)
}

// dropBatch gives up the memory of a large answer. Its ids had room only until they were written.
func (s *scratch) dropBatch() {
	s.batch.Texts = nil
	if cap(s.batch.IDs) > maxRun {
		s.batch.IDs = nil
	}
}
