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
	"testing/synctest"
	"time"

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

func (p *picky) Sent(b []byte) { p.sent = string(b) }

func (p *picky) Received(b []byte) (bool, error) {
	if string(b) != p.sent {
		return false, dial.Malformed("%s instead of %s", b, p.sent)
	}
	return true, nil
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
			Packet: func(_, begin []byte, length int) (bool, error) {
				got = append(got, string(begin)+strings.Repeat(".", length-len(begin)))
				return string(begin) == "ab", nil
			}}
		for rest := stream; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			whole, err := p.Received(rest[:min(size, len(rest))])
			if err != nil || whole != (size >= len(rest)) {
				t.Fatalf("in reads of %d, with %d left: whole %v, %v", size, len(rest), whole, err)
			}
		}
		if all := strings.Join(got, " "); all != "a  abc... abc ab" {
			t.Errorf("in reads of %d: %q", size, all)
		}
	}
}

func TestPacketsWithoutEndAreRefused(t *testing.T) {
	t.Parallel()
	p := dial.Packets{Header: 1, Length: func([]byte) (int, error) { return 0, nil }, Packet: func([]byte, []byte, int) (bool, error) { return false, nil }}
	most := make([]byte, dial.MaxPieces)
	if _, err := p.Received(most); err != nil {
		t.Error(err)
	}
	p.Sent()
	if _, err := p.Received(most); err != nil {
		t.Errorf("after another question: %v", err)
	}
	if _, err := p.Received(most[:1]); !errors.Is(err, dial.ErrMalformed) {
		t.Error(err)
	}
}

// whole ends an answer with a dot.
type whole struct{}

func (whole) Sent([]byte) {}

func (whole) Received(b []byte) (bool, error) { return bytes.HasSuffix(b, []byte(".")), nil }

// A hostile store answers all calls at once, and clients take several times the bytes.
func TestLongAnswersAreReadOneByOne(t *testing.T) {
	const long = 1<<20 + 1
	defer dial.FreshTurn()
	synctest.Test(t, func(t *testing.T) {
		dial.FreshTurn()
		var guards [3]dial.Guard
		for i := range guards {
			guards[i].Check = whole{}
		}
		first, second, third := &guards[0], &guards[1], &guards[2]
		read := func(g *dial.Guard, n int, end string) (took time.Duration) {
			t.Helper()
			began := time.Now()
			if err := g.Received(append(make([]byte, n), end...)); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		read(first, long, "")
		time.AfterFunc(time.Second, func() { _ = first.Received([]byte(".")) })
		if took := read(third, 100, ""); took != 0 {
			t.Errorf("a short answer waited for %v", took)
		}
		if took := read(second, long, ""); took != time.Second {
			t.Errorf("a second long answer waited for %v", took)
		}
		if err := first.Received(make([]byte, long)); err == nil || errors.Is(err, dial.ErrMalformed) {
			t.Errorf("while the second is not whole: %v", err)
		}
		second.Sent(nil)
		read(third, long, "")
		time.Sleep(30 * time.Second) // its connection was lost
		read(second, long, ".")
		read(second, long, "")
		second.Sent(nil)
	})
}
