package storeurl

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/firn-id/firn/store/dial"
)

// guardPostgres makes the driver connect by the dialer of all stores. The driver would wait for each address
// of a host in turn, so it gets all of them as one. It checks what it reads itself, TLS removed, up to what a message
// may announce and how many there are.
func guardPostgres(cfg *pgconn.Config, addresses *dial.Dialer) {
	cfg.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		addrs, err := new(dial.Dialer).Addresses(ctx, host)
		return []string{strings.Join(addrs, ",")}, err
	}
	cfg.DialFunc = addresses.Dial
	cfg.MaxProtocolMessageBodyLen = dial.MaxPiece
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		guard := &dial.Guard{Check: postgresCheck()}
		both := guarded{r, w, guard}
		return pgproto3.NewFrontend(both, both)
	}
}

// listed is a dialer that gets the addresses of a host as one name.
func listed() *dial.Dialer {
	return &dial.Dialer{Lookup: func(_ context.Context, addrs string) ([]string, error) { return strings.Split(addrs, ","), nil }}
}

// A guarded is both directions of a connection, with what looks at them.
type guarded struct {
	io.Reader
	io.Writer
	guard *dial.Guard
}

func (g guarded) Read(b []byte) (int, error) {
	n, err := g.Reader.Read(b)
	if refused := g.guard.Received(b[:n]); refused != nil {
		return 0, refused
	}
	return n, err
}

func (g guarded) Write(b []byte) (int, error) {
	g.guard.Sent(b)
	return g.Writer.Write(b)
}

// postgresMessages is the [dial.Check] of PostgreSQL's protocol: the driver keeps all parameters and notices
// that it gets.
type postgresMessages struct{ dial.Packets }

func postgresCheck() dial.Check {
	return &postgresMessages{dial.Packets{
		Header: 5, // the type, and a length that counts itself
		Length: func(header []byte) (int, error) {
			n := int64(binary.BigEndian.Uint32(header[1:])) - 4
			if n < 0 || n > dial.MaxPiece {
				return 0, dial.Malformed("a message of %d bytes, 0 to %d are allowed", n, dial.MaxPiece)
			}
			return int(n), nil
		},
		Packet: func(_, _ []byte, _ int) error { return nil },
	}}
}

// Sent implements [dial.Check]. The client sends a statement with its parameters, first a message with an empty name, a zero
// byte, the statement, and a zero byte. Only the statement of a listing sorts by the key.
func (p *postgresMessages) Sent(b []byte) (lists bool) {
	p.Packets.Sent()
	const begin = len("P") + 4 // a length
	if len(b) <= begin || b[0] != 'P' || b[begin] != 0 {
		return false
	}
	statement, _, _ := bytes.Cut(b[begin+1:], []byte{0})
	return bytes.HasSuffix(statement, []byte(" ORDER BY k"))
}

// mysqlPackets is the [dial.Check] of MySQL's protocol, until a connection speaks TLS: then only the bytes of its
// answers are bounded. The driver joins packets of the greatest size without end, panics over short ones, and
// allocates the columns that an answer announces.
type mysqlPackets struct {
	dial.Packets
	begun    bool // the greeting has come
	answers  bool // the next packet begins an answer
	prepares bool // to COM_STMT_PREPARE, which has a format of its own
	inRows   bool
	secret   bool // TLS
}

const mysqlKept = 512 // bytes of a packet

func mysqlCheck() dial.Check {
	p := &mysqlPackets{}
	p.Packets = dial.Packets{
		Header: 4, // a length in 3 bytes, and a number
		Keep:   mysqlKept,
		Length: func(header []byte) (int, error) {
			n := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
			if n > dial.MaxPiece {
				return 0, dial.TooLong("a packet", n, dial.MaxPiece)
			}
			return n, nil
		},
		Packet: p.packet,
	}
	return p
}

// mysqlListingEnds is how statements end whose answers have any number of rows: those of listings, and those that read other
// systems' tables. Values are in the middle.
const mysqlListingEnds = " LIMIT 18446744073709551615"

// Sent implements [dial.Check]. The number of the packet that begins a command is 0.
func (p *mysqlPackets) Sent(b []byte) (lists bool) {
	const (
		prepare      = 0x16 // COM_STMT_PREPARE
		request, ssl = 32, 0x800
	)
	p.Packets.Sent()
	switch {
	case len(b) < 5:
	case b[3] == 0:
		p.answers, p.inRows, p.prepares = true, false, b[4] == prepare
	case !p.answers && len(b) == 4+request && b[0] == request && binary.LittleEndian.Uint32(b[4:])&ssl != 0:
		p.secret = true
	}
	return p.secret || bytes.HasSuffix(b, []byte(mysqlListingEnds))
}

// Received implements [dial.Check].
func (p *mysqlPackets) Received(b []byte) error {
	if p.secret {
		return nil
	}
	return p.Packets.Received(b)
}

const (
	mysqlOK, mysqlEnd, mysqlError = 0x00, 0xfe, 0xff
	mysqlColumns                  = 250 // more are announced by more than one byte; Firn asks for ten
)

// packet checks one packet.
func (p *mysqlPackets) packet(_, b []byte, length int) error {
	short := dial.Malformed("a packet of %d bytes, %x", length, b[:min(len(b), 16)])
	switch {
	case length == 0:
		return short
	case b[0] == mysqlError:
		if length < 4 || b[3] == '#' && length < 9 {
			return short
		}
	case !p.begun:
		// Protocol, version, connection, 8 bytes of a challenge, a zero, capabilities, charset, status, capabilities, a
		// length, 10 bytes, 13 of the challenge.
		if end := bytes.IndexByte(b, 0); b[0] != 10 || end < 0 || length < end+1+4+8+1+2+1+2+2+1+10+13 {
			return short
		}
	case p.answers && !p.inRows && !p.prepares:
		p.inRows = b[0] != mysqlOK
		if b[0] > mysqlColumns {
			return dial.Malformed("an answer that begins with %x, as with more than %d columns", b[:min(len(b), 16)], mysqlColumns)
		}
		if b[0] == mysqlOK {
			return checkMySQLEnd(b, short)
		}
	case p.answers && p.inRows && b[0] == mysqlEnd:
		return checkMySQLEnd(b, short)
	case !p.answers && b[0] == mysqlOK && length < 7:
		return short
	}
	p.begun = true
	return nil
}

// checkMySQLEnd checks a packet that ends an answer. After one that says that more results follow the driver
// reads another count of columns; Firn sends no statement that has several.
func checkMySQLEnd(b []byte, short error) error {
	const more = 0x08
	at := 3 // of the status in an EOF packet: after its type and a count of warnings
	if len(b) != 5 {
		at = 1
		for range 2 { // affected rows, the last number
			if at >= len(b) {
				return short
			}
			at += mysqlNumber(b[at])
		}
	}
	if len(b) < at+2 {
		return short
	}
	if b[at]&more != 0 {
		return dial.Malformed("an answer that announces another")
	}
	return nil
}

// mysqlNumber returns how many bytes a number has that begins with b.
func mysqlNumber(b byte) int {
	switch b {
	case 0xfc:
		return 3
	case 0xfd:
		return 4
	case 0xfe:
		return 9
	default:
		return 1
	}
}
