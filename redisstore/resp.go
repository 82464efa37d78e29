package redisstore

import (
	"bytes"
	"strconv"

	"github.com/firn-id/firn/store/dial"
)

const (
	maxDepth = 32       // of arrays in arrays; the answer to COMMAND has nine
	maxLine  = 64 << 10 // bytes
)

// resp is the [dial.Check] of Redis' protocol. The client allocates strings and arrays by their announced lengths,
// reads lines without end, and descends into arrays by recursion.
type resp struct {
	line   []byte
	skip   int   // bytes of a string still to come, with its end of line
	open   []int // the elements still to come of each open array
	pieces int   // replies, and elements that arrays announce, since the last request
}

// listingEnds is how requests for listings end; that of one register ends with [afterEndOfKey].
const listingEnds = afterAll + "\r\n"

// topologyEnds is how the client's request for the slots of a cluster ends: thousands of ranges are more than a megabyte.
const topologyEnds = "$7\r\ncluster\r\n$5\r\nslots\r\n"

// Sent implements [dial.Check].
func (r *resp) Sent(b []byte) (lists bool) {
	r.pieces = 0
	return bytes.HasSuffix(b, []byte(listingEnds)) || bytes.HasSuffix(b, []byte(topologyEnds))
}

// Received implements [dial.Check].
func (r *resp) Received(b []byte) error {
	for len(b) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(b))
			r.skip, b = r.skip-n, b[n:]
			continue
		}
		c := b[0]
		b = b[1:]
		if c != '\n' {
			if r.line = append(r.line, c); len(r.line) > maxLine {
				return dial.TooLong("a line", len(r.line), maxLine)
			}
			continue
		}
		if err := r.end(); err != nil {
			return err
		}
		r.line = r.line[:0]
	}
	return nil
}

// end ends a line.
func (r *resp) end() error {
	if len(r.open) == 0 { // others were counted when their array announced them
		if r.pieces++; r.pieces > dial.MaxPieces {
			return dial.TooMany()
		}
	}
	if n := len(r.line); n < 2 || r.line[n-1] != '\r' {
		return dial.Malformed("a line %.99q", r.line)
	}
	switch begin := r.line[0]; begin {
	case '+', '-', ':', '_', ',', '#', '(':
		r.close()
		return nil
	case '$', '!', '=':
		n, err := r.length(dial.MaxPiece)
		if n >= 0 {
			r.skip = n + len("\r\n")
		}
		r.close()
		return err
	case '*', '~', '>', '%':
		n, err := r.length(dial.MaxPieces)
		if begin == '%' {
			n *= 2 // keys and values
		}
		if n <= 0 {
			r.close()
			return err
		}
		r.pieces += n
		if r.open = append(r.open, n); len(r.open) > maxDepth {
			return dial.Malformed("more than %d arrays in each other", maxDepth)
		}
		if r.pieces > dial.MaxPieces {
			return dial.TooMany()
		}
		return nil
	default: // attributes too: Redis sends none
		return dial.Malformed("a reply of type %q", begin)
	}
}

// length returns the length that the line announces, negative for a missing value.
func (r *resp) length(most int) (int, error) {
	n, err := strconv.Atoi(string(r.line[1 : len(r.line)-1]))
	if err != nil || n < -1 || n > most {
		return 0, dial.Malformed("%.99q announces more than the %d that are allowed", r.line[:len(r.line)-1], most)
	}
	return n, nil
}

// close counts an element, and those that end with it.
func (r *resp) close() {
	for n := len(r.open); n > 0; n-- {
		if r.open[n-1]--; r.open[n-1] > 0 {
			return
		}
		r.open = r.open[:n-1]
	}
}

func check() dial.Check { return &resp{} }
