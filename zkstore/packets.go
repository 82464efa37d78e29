package zkstore

import (
	"encoding/binary"

	"github.com/firn-id/firn/store/dial"
)

const (
	// maxPacket bounds an answer: the names on one level, some 30,000 in the 1 MB that a server allows by default.
	maxPacket = 16 << 20
	// maxMulti bounds the answer to a transaction: three changes, and two paths.
	maxMulti = 64 << 10

	headerBytes  = 16        // of an answer: xid, zxid, error
	connectBytes = 20        // of the answer to a connect: version, time-out, session, length of a password
	minTimeout   = 10        // ms: the client pings three times in it
	maxPassword  = 64        // a server sends 16 bytes; the client must be able to send it back
	readsNames   = int32(12) // getChildren2
	readsData    = int32(4)
	transaction  = int32(14)
)

// packets is the [dial.Check] of ZooKeeper's protocol. The client decodes in goroutines of its own, where a
// panic over a short packet ends the process, and allocates by announced lengths.
type packets struct {
	dial.Packets
	asked     map[int32]int32 // the operations, by xid, whose answers need a check of their own
	began     bool            // the connect was sent
	connected bool            // and answered
}

func check() dial.Check {
	p := &packets{asked: map[int32]int32{}}
	p.Packets = dial.Packets{Header: 4, Keep: maxMulti, Length: p.bound, Packet: p.packet}
	return p
}

// Sent implements [dial.Check]. The client sends each request by one write. Those before it may be unanswered, so that all
// may be listings: packets bounds each answer by its own request.
func (p *packets) Sent(b []byte) (lists bool) {
	p.Packets.Sent()
	if !p.began {
		p.began = true
		return true
	}
	if len(b) < 12 {
		return true
	}
	switch op := int32(binary.BigEndian.Uint32(b[8:])); op {
	case readsNames, readsData, transaction:
		p.asked[int32(binary.BigEndian.Uint32(b[4:]))] = op
	}
	return true
}

// bound checks the length of a packet.
func (p *packets) bound(header []byte) (int, error) {
	length, least := int64(binary.BigEndian.Uint32(header)), headerBytes
	if !p.connected {
		least = connectBytes
	}
	if length < int64(least) || length > maxPacket {
		return 0, dial.Malformed("a packet of %d bytes, %d to %d are allowed", length, least, maxPacket)
	}
	return int(length), nil
}

// packet checks an answer.
func (p *packets) packet(_, b []byte, length int) error {
	if !p.connected {
		p.connected = true
		return checkConnect(b)
	}
	return p.answer(b, length)
}

// answer checks an answer, as far as the client does not.
func (p *packets) answer(b []byte, length int) error {
	xid := int32(binary.BigEndian.Uint32(b))
	op, failed := p.asked[xid], binary.BigEndian.Uint32(b[12:]) != 0
	delete(p.asked, xid)
	if op != readsNames && length > dial.MaxPiece {
		return dial.TooLong("an answer other than names", length, dial.MaxPiece)
	}
	if b = b[headerBytes:]; failed || op == 0 {
		return nil
	}
	if op == transaction {
		if length > maxMulti {
			return dial.TooLong("the answer to a transaction", length, maxMulti)
		}
		return checkMulti(b)
	}
	if len(b) < 4 {
		return dial.Malformed("an answer without a length")
	}
	n, rest := int64(int32(binary.BigEndian.Uint32(b))), int64(length-headerBytes-4)
	if op == readsNames && (n < 0 || 4*n > rest || n > dial.MaxPieces) || op == readsData && n > rest {
		return dial.Malformed("an answer of %d bytes that announces %d", length, n)
	}
	return nil
}

// checkConnect checks what the client computes with: it makes a ticker of the time-out.
func checkConnect(b []byte) error {
	if timeout := int32(binary.BigEndian.Uint32(b[4:])); timeout < minTimeout && binary.BigEndian.Uint64(b[8:]) != 0 {
		return dial.Malformed("a session time-out of %d ms, at least %d are allowed", timeout, minTimeout)
	}
	if n := int32(binary.BigEndian.Uint32(b[16:])); n > maxPassword {
		return dial.TooLong("a session's password", int(n), maxPassword)
	}
	return nil
}

// checkMulti checks that the answer to a transaction is as long as it says.
func checkMulti(b []byte) error {
	const (
		created, set, failure = 1, 5, -1
		headBytes, statBytes  = 9, 68 // of each change, and of a znode's state
	)
	for {
		if len(b) < headBytes {
			return dial.Malformed("the answer to a transaction ends within a change")
		}
		op, done := int32(binary.BigEndian.Uint32(b)), b[4] != 0
		if b = b[headBytes:]; done {
			return nil
		}
		n := 0
		switch op {
		case created:
			if n = 4; len(b) >= n {
				n += int(binary.BigEndian.Uint32(b))
			}
		case set:
			n = statBytes
		case failure:
			n = 4
		}
		if n > len(b) {
			return dial.Malformed("the answer to a transaction ends within a change")
		}
		b = b[n:]
	}
}
