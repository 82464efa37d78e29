package respapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store/memstore"
)

// tape is a connection whose client has sent all its commands already. They arrive in pieces,
// and its addresses are not on this machine.
type tape struct {
	net.Conn
	in    []byte
	out   bytes.Buffer
	piece func() int
}

func (t *tape) Read(b []byte) (int, error) {
	if len(t.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b, t.in[:min(max(t.piece(), 1), len(t.in))])
	t.in = t.in[n:]
	return n, nil
}

func (t *tape) Write(b []byte) (int, error)      { return t.out.Write(b) }
func (t *tape) Close() error                     { return nil }
func (t *tape) SetReadDeadline(time.Time) error  { return nil }
func (t *tape) SetWriteDeadline(time.Time) error { return nil }
func (t *tape) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }
func (t *tape) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 2} }

// counted are namespaces whose ids are the same in every run.
var counted = settings.Config{Anonymous: []string{"*"}, Limits: settings.Limits{Batch: new(5000)}, Namespaces: map[string]settings.Namespace{
	"items": {Kind: "segment", Segment: settings.Segment{MinStep: 100, MaxStep: 100}}, "txn": {Kind: "sequence"},
}}

func open(t testing.TB, cfg settings.Config) *Server {
	t.Helper()
	cfg.Anonymous = []string{"*"} // the played connection is not from this machine
	registry := prometheus.NewRegistry()
	service, err := issuing.Open(context.Background(), issuing.Config{
		Settings: cfg, Store: memstore.New(nil), Log: slog.New(slog.DiscardHandler), Registry: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(Config{Service: service, Log: slog.New(slog.DiscardHandler)})
}

// play serves a connection from beginning to end, and returns its answers.
func (s *Server) play(in []byte, piece func() int) string {
	on := &tape{in: bytes.Clone(in), piece: piece}
	c := newConn(s, on)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.group.Add(1)
	s.mu.Unlock()
	c.serve()
	return on.out.String()
}

// inTurn answers the same commands in the simplest way: all are read at once, and each is
// answered by itself.
func (s *Server) inTurn(t testing.TB, in []byte) string {
	t.Helper()
	var out strings.Builder
	var p parser
	c := newConn(s, &tape{})
	prepare(t, c)
	c.space()
	for in = bytes.Clone(in); !c.closing; {
		args, n, err := p.parse(in, callerLimits)
		if err != nil {
			return out.String() + "-ERR " + err.Error() + "\r\n"
		}
		if n == 0 {
			break
		}
		if len(args) > 0 {
			c.out, c.flushed = c.out[:0], time.Now() // so that answers stay in c.out
			c.one(args)
			out.Write(c.out)
		}
		in = in[n:]
	}
	return out.String()
}

// FuzzConnection compares a connection whose bytes arrive in pieces with inTurn: the answers
// must not depend on how the bytes arrive, nor on which commands are answered together.
func FuzzConnection(f *testing.F) {
	const items = "*2\r\n$4\r\nINCR\r\n$5\r\nitems\r\n"
	for _, in := range []string{
		strings.Repeat(items, 5) + "*2\r\n$4\r\nincr\r\n$3\r\ntxn\r\n" + items + items[:20],
		"INCRBY items 250\r\n" + items + items + "INCRBY txn 3\nINCR txn\n", "PING\r\n*1\r\nX", "FIRN.NEXT items COUNT 150\r\nQUIT\r\nPING\r\n",
		"MULTI\r\nHELLO 3\r\nMULTI\r\nPING\r\nEXEC x\r\nMULTI\r\nAUTH x\r\nRESET\r\nEXEC\r\n", "HELLO 3 SETNAME x\r\nCLIENT GETNAME\r\nCONFIG GET *\r\nRESET\r\n", "MULTI\r\n" + items + items + "PING\r\nEXEC\r\n", "MULTI\nFOO\nEXEC\n",
		"COMMAND DOCS\r\nCOMMAND\r\nAUTH a b\nECHO 'x y'\n", "POST / HTTP/1.1\r\n\r\n", "FIRN.DECODE items 1\nINCR none\nINCRBY items x\nINCRBY items 99999\n",
		strings.Repeat(items, 1030),
	} {
		f.Add([]byte(in), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		if bytes.Contains(bytes.ToLower(in), []byte("info")) || bytes.Contains(bytes.ToLower(in), []byte("list")) {
			return // their answers depend on the time
		}
		random := rand.New(rand.NewPCG(seed, 0))
		got := open(t, counted).play(in, func() int { return random.IntN(64) })
		want := open(t, counted).inTurn(t, in)
		if got != want {
			t.Fatalf("%q:\n%q\nin turn:\n%q", in, got, want)
		}
		if whole := open(t, counted).play(in, func() int { return len(in) }); whole != want {
			t.Fatalf("%q:\n%q\nin turn:\n%q", in, whole, want)
		}
	})
}

func TestAnUnauthenticatedClientGetsNOAUTH(t *testing.T) {
	s := open(t, counted)
	for say, want := range map[string]string{
		"INCR items\r\n":                      "-NOAUTH Authentication required.\r\n",
		"NOSUCH\r\n":                          "-NOAUTH Authentication required.\r\n",
		"PING\r\n":                            "-NOAUTH Authentication required.\r\n",
		"MULTI\r\n":                           "-NOAUTH Authentication required.\r\n",
		"HELLO 3\r\n":                         "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time\r\n",
		"QUIT\r\n":                            "+OK\r\n",
		"*11\r\n":                             "-ERR Protocol error: invalid multibulk length\r\n",
		"*1\r\n$20000\r\n":                    "-ERR Protocol error: invalid bulk length\r\n",
		"*2\r\n$4\r\nINCR\r\n$5\r\nitems\r\n": "-NOAUTH Authentication required.\r\n",
	} {
		on := &tape{}
		c := newConn(s, on)
		prepare(t, c)
		c.caller, c.denied = nil, errors.New("no token was given")
		c.filled = copy(c.space(), say)
		c.consume()
		if got := string(c.out); got != want {
			t.Errorf("%s: %q, want %q", say, got, want)
		}
	}
}

func TestResetDoesNotExtendTheTimeToAuthenticate(t *testing.T) {
	s := open(t, counted)
	c := newConn(s, &tape{})
	prepare(t, c)
	since := time.Now().Add(-time.Hour)
	c.caller, c.unauthenticatedSince, c.local = nil, since, false
	if err := s.cfg.Service.Apply(t.Context(), settings.Config{Namespaces: counted.Namespaces}); err != nil { // without anonymous, only callers on this machine are served
		t.Fatal(err)
	}
	c.filled = copy(c.space(), "RESET\r\n")
	c.consume()
	if got := string(c.out); got != "+RESET\r\n" || c.caller != nil || !c.unauthenticatedSince.Equal(since) {
		t.Errorf("%q, %v, unauthenticated since %v", got, c.caller, c.unauthenticatedSince)
	}
}

func TestAClientIsIdentifiedAgainAfterAChangeOfTheConfiguration(t *testing.T) {
	s := open(t, counted)
	c := newConn(s, &tape{})
	prepare(t, c)
	c.space()
	c.caller = nil
	c.consume()
	if c.caller != nil {
		t.Error("without a change")
	}
	if err := s.cfg.Service.Apply(t.Context(), counted); err != nil {
		t.Fatal(err)
	}
	c.consume()
	if c.caller == nil {
		t.Error("not after a change")
	}
}

func TestAPipelineAllocatesNothing(t *testing.T) {
	s := open(t, settings.Config{Namespaces: map[string]settings.Namespace{
		"orders": {Pooled: settings.Pooled{Layout: "41/0/0/22"}}, "items": {Kind: "segment", Segment: settings.Segment{MinStep: 10_000_000, MaxStep: 10_000_000}},
	}})
	in := []byte(strings.Repeat("*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n", 16) +
		strings.Repeat("*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n*2\r\n$4\r\nINCR\r\n$5\r\nitems\r\n*3\r\n$6\r\nINCRBY\r\n$5\r\nitems\r\n$2\r\n10\r\n", 16) +
		"PING\r\n*4\r\n$9\r\nFIRN.NEXT\r\n$5\r\nitems\r\n$5\r\nCOUNT\r\n$3\r\n100\r\n")
	on := &tape{}
	c := newConn(s, on)
	prepare(t, c)
	each := func() {
		on.out.Reset()
		if n := copy(c.space(), in); !c.received(n, time.Now()) || c.filled != 0 {
			t.Fatal(c.filled, c.err)
		}
	}
	each() // warm up: some memory is allocated once
	if n := testing.AllocsPerRun(200, each); n >= 1 {
		t.Errorf("%v allocations for 66 commands", n)
	}
}

// The room for the ids of an answer is free once it is written: then the connection must not keep their memory.
func TestALargeAnswerLeavesNoMemory(t *testing.T) {
	s := open(t, settings.Config{Namespaces: map[string]settings.Namespace{"items": {Kind: "segment"}, "users": {Kind: "uuid"}}})
	c := newConn(s, &tape{})
	prepare(t, c)
	for _, name := range []string{"items", "users"} {
		c.filled = copy(c.space(), "FIRN.NEXT "+name+" COUNT 50000\r\n")
		c.consume()
		if ids, texts := cap(c.batch.IDs), cap(c.batch.Texts); ids > maxRun || texts > 0 {
			t.Errorf("of %s it keeps %d ids and %d texts", name, ids, texts)
		}
	}
}

func prepare(t testing.TB, c *conn) {
	t.Helper()
	if err := c.prepare(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkPipeline(b *testing.B) {
	for name, size := range map[string]int{"1": 1, "16": 16, "64": 64} {
		for _, ns := range []string{"orders", "items_"} {
			b.Run(ns+"/"+name, func(b *testing.B) {
				s := open(b, settings.Config{Namespaces: map[string]settings.Namespace{
					"orders": {Pooled: settings.Pooled{Layout: "41/0/0/22"}}, "items_": {Kind: "segment", Segment: settings.Segment{MinStep: 100_000_000, MaxStep: 100_000_000}},
				}})
				in := []byte(strings.Repeat("*2\r\n$4\r\nINCR\r\n$6\r\n"+ns+"\r\n", size))
				on := &tape{}
				c := newConn(s, on)
				prepare(b, c)
				b.ReportAllocs()
				for b.Loop() {
					on.out.Reset()
					if n := copy(c.space(), in); !c.received(n, time.Now()) || !c.rest() {
						b.Fatal(c.err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/command")
			})
		}
	}
}
