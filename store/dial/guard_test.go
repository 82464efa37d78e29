package dial_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/store/dial"
)

func TestAnAnswerWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	report := &dial.Report{}
	c, err := (&dial.Dialer{Lookup: anyOf("good"), Report: report, Connect: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}).Dial(t.Context(), "tcp", "name:1")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for chunk := make([]byte, 1<<20); ; {
			if _, err := theirs.Write(chunk); err != nil {
				return
			}
		}
	}()
	for range 3 { // each a whole answer to a question
		go func() { _, _ = io.ReadFull(theirs, make([]byte, 1)) }()
		if _, err := c.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, dial.MaxAnswer)); err != nil {
			t.Fatal(err)
		}
	}
	if report.Err() != nil {
		t.Errorf("before: %v", report.Err())
	}
	n, err := c.Read(make([]byte, 1))
	if n != 0 || !errors.Is(err, dial.ErrMalformed) || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("%d bytes, %v", n, err)
	}
	if !errors.Is(report.Err(), dial.ErrMalformed) {
		t.Errorf("reported: %v", report.Err())
	}
	if _, err := theirs.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is open: %v", err)
	}
}

// picky refuses what is not an answer to what was sent last.
type picky struct{ sent string }

func (p *picky) Sent(b []byte) (lists bool) {
	p.sent = string(b)
	return false
}

func (p *picky) Received(b []byte) error {
	if string(b) != p.sent {
		return dial.Malformed("%s instead of %s", b, p.sent)
	}
	return nil
}

func TestACheckSeesWhatIsSentAndReceived(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	d := &dial.Dialer{Lookup: anyOf("good"), Check: func() dial.Check { return &picky{} }, Connect: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}
	c, err := d.Dial(t.Context(), "tcp", "name:1")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.ReadFull(theirs, make([]byte, 3))
		_, _ = theirs.Write([]byte("abc"))
		_, _ = theirs.Write([]byte("evil"))
	}()
	if _, err := c.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if n, err := c.Read(make([]byte, 10)); n != 0 || !errors.Is(err, dial.ErrMalformed) || !strings.Contains(err.Error(), "evil instead of abc") {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// Clients find out by the socket whether a server has closed an idle connection.
func TestAConnectionShowsItsSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := (&dial.Dialer{}).Dial(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if raw, ok := c.(syscall.Conn); !ok {
		t.Errorf("a %T", c)
	} else if _, err := raw.SyscallConn(); err != nil {
		t.Error(err)
	}
}

// frame writes a packet with a length of four bytes.
func frame(body string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestPacketsAreCutWhereverReadsEnd(t *testing.T) {
	t.Parallel()
	const keep = 3
	stream := bytes.Join([][]byte{frame("a"), frame(""), frame("abcdef"), frame("abc"), frame("ab")}, nil)
	for size := 1; size <= len(stream); size++ {
		var got []string
		p := dial.Packets{Header: 4, Keep: keep,
			Length: func(h []byte) (int, error) { return int(binary.BigEndian.Uint32(h)), nil },
			Packet: func(_, begin []byte, length int) error {
				got = append(got, string(begin)+strings.Repeat(".", length-len(begin)))
				return nil
			}}
		for rest := stream; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if err := p.Received(rest[:min(size, len(rest))]); err != nil {
				t.Fatalf("in reads of %d, with %d left: %v", size, len(rest), err)
			}
		}
		if all := strings.Join(got, " "); all != "a  abc... abc ab" {
			t.Errorf("in reads of %d: %q", size, all)
		}
	}
}

func TestPacketsWithoutEndAreRefused(t *testing.T) {
	t.Parallel()
	p := dial.Packets{Header: 1, Length: func([]byte) (int, error) { return 0, nil }, Packet: func([]byte, []byte, int) error { return nil }}
	most := make([]byte, dial.MaxPieces)
	if err := p.Received(most); err != nil {
		t.Error(err)
	}
	p.Sent()
	if err := p.Received(most); err != nil {
		t.Errorf("after another question: %v", err)
	}
	if err := p.Received(most[:1]); !errors.Is(err, dial.ErrMalformed) {
		t.Error(err)
	}
}

// lists is a check that knows listings by their first letter.
type lists struct{}

func (lists) Sent(b []byte) bool { return bytes.HasPrefix(b, []byte("L")) }

func (lists) Received([]byte) error { return nil }

// A hostile store answers all calls at once, and clients take several times the bytes.
func TestOnlyAListingMayHaveALongAnswer(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	g := dial.Guard{Check: lists{}}
	asked := func(question string, n int) error {
		g.Sent([]byte(question))
		return g.Received(make([]byte, n))
	}
	for _, ok := range []struct {
		question string
		n        int
	}{{"Get", most}, {"List", dial.MaxAnswer}, {"Get", most}} {
		if err := asked(ok.question, ok.n); err != nil {
			t.Errorf("%d bytes to %s: %v", ok.n, ok.question, err)
		}
	}
	if err := g.Received(make([]byte, 1)); !errors.Is(err, dial.ErrMalformed) || !strings.Contains(err.Error(), "more than 1 MiB") {
		t.Errorf("one byte more to Get: %v", err)
	}
	greeted := dial.Guard{Check: lists{}}
	if err := greeted.Received(make([]byte, most+1)); !errors.Is(err, dial.ErrMalformed) {
		t.Errorf("before any question: %v", err)
	}
	g = dial.Guard{Check: lists{}}
	if err := asked("List", dial.MaxAnswer+1); !errors.Is(err, dial.ErrMalformed) || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("one byte more to List: %v", err)
	}
}
