package zkstore

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/dial"
	"github.com/firn-id/firn/store/storetest/servers"
)

// number appends numbers of four bytes.
func number(b []byte, numbers ...int32) []byte {
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// packet is a packet of an announced length.
func packet(length int, b []byte) []byte { return append(number(nil, int32(length)), b...) }

// whole is a packet as long as it says.
func whole(b []byte) []byte { return packet(len(b), b) }

// header begins an answer.
func header(xid int32) []byte { return number(nil, xid, 0, 1, 0) }

// session is the answer to a connect.
func session(timeout int32, password int) []byte {
	return whole(append(number(nil, 0, timeout, 0, 77, int32(password)), make([]byte, password+1)...))
}

// serve answers a client until it hangs up.
func serve(c net.Conn, connect []byte, answer func(xid, op int32) []byte) {
	defer c.Close()
	for first := true; ; first = false {
		var size [4]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		request := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(c, request); err != nil {
			return
		}
		says := connect
		if !first {
			says = answer(int32(binary.BigEndian.Uint32(request)), int32(binary.BigEndian.Uint32(request[4:])))
		}
		if _, err := c.Write(says); err != nil {
			return
		}
	}
}

const syncs = 9 // the code of a sync

// The client decodes in goroutines of its own, and allocates what is announced: each of these ended the process,
// or took all memory.
func TestAHostileServerIsAnError(t *testing.T) {
	t.Parallel()
	good := session(5000, 16)
	fill := func(length int) func(int32, int32) []byte {
		return func(int32, int32) []byte { return packet(length, make([]byte, 1<<20)) }
	}
	for what, test := range map[string]struct {
		connect []byte
		answer  func(xid, op int32) []byte
		says    string
	}{
		"a connect without end":          {packet(-1, make([]byte, 1<<20)), nil, "a packet of 4294967295 bytes"},
		"a short connect":                {whole([]byte{0}), nil, "a packet of 1 bytes, 20"},
		"a session without a time-out":   {session(0, 16), nil, "a session time-out of 0 ms"},
		"a password that does not fit":   {session(5000, 300), nil, "a session's password of 300 bytes"},
		"a short answer":                 {good, func(xid, _ int32) []byte { return whole(number(nil, xid)) }, "a packet of 4 bytes, 16"},
		"an empty answer":                {good, fill(0), "a packet of 0 bytes"},
		"an answer without end":          {good, fill(1<<31 - 1), "a packet of 2147483647 bytes"},
		"an answer of a negative length": {good, fill(-1), "a packet of 4294967295 bytes"},
		"a long answer to a sync": {good, func(xid, _ int32) []byte {
			return whole(append(header(xid), make([]byte, 1<<20)...))
		}, "an answer other than names of 1048592 bytes"},
		"more names than bytes": {good, func(xid, op int32) []byte { return whole(number(header(xid), answerTo(op, 1<<30)...)) }, "announces 1073741824"},
		"more data than bytes": {good, func(xid, op int32) []byte {
			if op == readsNames { // one level, which is also a register
				return whole(append(number(header(xid), 1, 1), append([]byte("k"), make([]byte, 68)...)...))
			}
			return whole(number(header(xid), answerTo(op, 1<<31-1)...))
		}, "announces 2147483647"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			addr := servers.Accept(t, func(c net.Conn) { go serve(c, test.connect, test.answer) })
			s, err := Open(t.Context(), "zookeeper://"+addr)
			if err == nil {
				defer s.Close()
				_, err = s.List(t.Context(), "")
			}
			if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}

// answerTo begins an answer with a count, except that to a sync.
func answerTo(op, count int32) []int32 {
	if op == syncs {
		return []int32{0}
	}
	return []int32{count}
}

func TestTheAnswerToATransactionIsCheckedToItsEnd(t *testing.T) {
	t.Parallel()
	done := append(number(nil, -1), 1, 0xff, 0xff, 0xff, 0xff)
	change := func(op int32, more []byte) []byte { return append(append(number(nil, op), 0, 0, 0, 0, 0), more...) }
	good := append(change(1, append(number(nil, 2), "/k"...)), change(5, make([]byte, 68))...)
	good = append(append(good, change(2, nil)...), change(-1, number(nil, -110))...)
	for what, test := range map[string]struct {
		body    []byte
		refused bool
	}{
		"a good one":            {append(good, done...), false},
		"nothing":               {nil, true},
		"no end":                {good, true},
		"half an end":           {append(good, done[:4]...), true},
		"a path too long":       {append(change(1, number(nil, -1)), done...), true},
		"half a znode's state":  {change(5, make([]byte, 67)), true},
		"half an error":         {change(-1, []byte{0}), true},
		"a path without length": {change(1, []byte{0}), true},
	} {
		p := check()
		p.Sent(make([]byte, 48))
		if err := p.Received(session(5000, 16)); err != nil {
			t.Fatal(err)
		}
		p.Sent(whole(number(nil, 7, transaction)))
		if err := p.Received(whole(append(header(7), test.body...))); errors.Is(err, dial.ErrMalformed) != test.refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A server that makes up znodes sends one small answer after another.
func TestAListWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	// Each level has a child that has children, and long names that no key has, which are skipped.
	names := append(number(number(nil, 41), 1), 'x')
	for range 40 {
		names = append(number(names, 100_000), strings.Repeat("%", 100_000)...)
	}
	names = append(names, make([]byte, 68)...)
	level := append(number(nil, 0), make([]byte, 68)...)
	binary.BigEndian.PutUint32(level[4+52+4:], 5) // it has children
	addr := servers.Accept(t, func(c net.Conn) {
		go serve(c, session(5000, 16), func(xid, op int32) []byte {
			switch op {
			case readsNames:
				return whole(append(header(xid), names...))
			case readsData:
				return whole(append(header(xid), level...))
			}
			return whole(number(header(xid), 0))
		})
	})
	s, err := Open(t.Context(), "zookeeper://"+addr)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err = s.List(t.Context(), ""); !errors.Is(err, dial.ErrMalformed) || !strings.Contains(err.Error(), "a list of more than 64 MiB") {
		t.Error(err)
	}
}
