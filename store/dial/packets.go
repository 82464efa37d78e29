package dial

// Packets cuts what a server sends into packets, each with a header of a fixed size that has the length of
// the rest.
type Packets struct {
	Header int // bytes
	// Keep bounds how many bytes after the header Packet gets.
	Keep int
	// Length returns how many bytes follow a header, or an error for a length out of bounds.
	Length func(header []byte) (int, error)
	// Packet checks a packet by its header, the beginning of the rest, and the length of the rest.
	Packet func(header, begin []byte, length int) error

	got    []byte // of the header and what is kept
	length int    // of the rest; known once the header is complete
	known  bool
	skip   int // bytes still to come that are not kept
	pieces int
}

// Sent begins a new answer.
func (p *Packets) Sent() { p.pieces = 0 }

// Received checks the next bytes.
func (p *Packets) Received(b []byte) error {
	for len(b) > 0 {
		if p.skip > 0 {
			n := min(p.skip, len(b))
			p.skip, b = p.skip-n, b[n:]
			continue
		}
		n := min(p.end()-len(p.got), len(b))
		p.got, b = append(p.got, b[:n]...), b[n:]
		if err := p.step(); err != nil {
			return err
		}
	}
	return nil
}

// end is how much of the packet is kept.
func (p *Packets) end() int {
	if !p.known {
		return p.Header
	}
	return p.Header + min(p.length, p.Keep)
}

// step makes progress once the header, or what is kept, is complete.
func (p *Packets) step() (err error) {
	if !p.known && len(p.got) == p.Header {
		if p.length, err = p.Length(p.got); err != nil {
			return err
		}
		p.known = true
	}
	if !p.known || len(p.got) < p.end() {
		return nil
	}
	if p.pieces++; p.pieces > MaxPieces {
		return TooMany()
	}
	err = p.Packet(p.got[:p.Header], p.got[p.Header:], p.length)
	p.skip = p.length - (len(p.got) - p.Header)
	p.got, p.known = p.got[:0], false
	return err
}

// TooMany is the error for an answer above [MaxPieces].
func TooMany() error { return Malformed("more than %d pieces", MaxPieces) }

// TooLong is the error for a piece above a bound.
func TooLong(what string, length any, most int) error {
	return Malformed("%s of %v bytes, at most %d are allowed", what, length, most)
}
