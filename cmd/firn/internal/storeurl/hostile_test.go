package storeurl

import (
	"bytes"
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

// hostile accepts connections and plays a script: each text that it sends, and between them it reads whatever
// comes. The last is repeated without end if it is endless.
type hostile struct {
	what    string
	sends   []string
	endless bool
	says    string // in the error
}

func (h hostile) serve(c net.Conn) {
	defer c.Close()
	for i, text := range h.sends {
		if i > 0 {
			if _, err := c.Read(make([]byte, 1<<16)); err != nil {
				return
			}
		}
		for again := true; again; again = h.endless && i == len(h.sends)-1 {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
	_, _ = io.Copy(io.Discard, c) // until the client hangs up
}

// each opens a store of every hostile server, and expects an error that names the reason. Each of these ended the
// process, took all memory, or a size of it that the answer chose.
func each(t *testing.T, url func(addr string) string, list []hostile) {
	t.Helper()
	for _, h := range list {
		t.Run(h.what, func(t *testing.T) {
			t.Parallel()
			addr := servers.Accept(t, func(c net.Conn) { go h.serve(c) })
			_, err := Open(t.Context(), url(addr))
			if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), h.says) {
				t.Errorf("%v, want %q", err, h.says)
			}
		})
	}
}

// mysqlPacket is a packet of MySQL.
func mysqlPacket(number byte, body string) string {
	return string([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), number}) + body
}

// mysqlGreeting is that of a server that speaks no TLS.
var mysqlGreeting = "\x0a8.0.36\x00" + "\x05\x00\x00\x00" + "12345678\x00" + "\xdf\xf7" + "\x21" + "\x02\x00" + "\xff\xdf" + "\x15" +
	strings.Repeat("\x00", 10) + "123456789012\x00" + "mysql_native_password\x00"

func TestAHostileMySQLIsAnError(t *testing.T) {
	t.Parallel()
	greeting := mysqlPacket(0, mysqlGreeting)
	ok := mysqlPacket(2, "\x00\x00\x00\x02\x00\x00\x00")
	var most, least [8]byte
	binary.LittleEndian.PutUint64(most[:], 1<<62)
	binary.LittleEndian.PutUint64(least[:], 1<<64-1)
	column := mysqlPacket(2, "\x03def\x00\x00\x00\x01a\x01a\x0c\x21\x00\x00\x01\x00\x00\xfd\x00\x00\x00\x00\x00")
	after := func(answer string) []string { return []string{greeting, ok, answer} }
	each(t, func(addr string) string { return "mysql://u:p@" + addr + "/db" }, []hostile{
		{"a greeting of one byte", []string{mysqlPacket(0, "\x0a")}, false, "a packet of 1 bytes"},
		{"a greeting without an end", []string{mysqlPacket(0, "\x0a8.0.36")}, false, "a packet of 7 bytes"},
		{"a greeting cut off", []string{mysqlPacket(0, mysqlGreeting[:30])}, false, "a packet of 30 bytes"},
		{"an endless greeting", []string{"\xff\xff\xff\x00"}, true, "a packet of 16777215 bytes"},
		{"an empty packet", []string{"\x00\x00\x00\x00"}, false, "a packet of 0 bytes"},
		{"a short refusal", []string{greeting, mysqlPacket(2, "\xff")}, false, "a packet of 1 bytes, ff"},
		{"a short welcome", []string{greeting, mysqlPacket(2, "\x00")}, false, "a packet of 1 bytes, 00"},
		{"a short error", after(mysqlPacket(1, "\xff")), false, "a packet of 1 bytes, ff"},
		{"an error without its state", after(mysqlPacket(1, "\xff\x01\x02#")), false, "a packet of 4 bytes"},
		{"a short success", after(mysqlPacket(1, "\x00\x00\x00")), false, "a packet of 3 bytes"},
		{"2^62 columns", after(mysqlPacket(1, "\xfe"+string(most[:]))), false, "more than 250 columns"},
		{"-1 columns", after(mysqlPacket(1, "\xfe"+string(least[:]))), false, "more than 250 columns"},
		{"a million columns", after(mysqlPacket(1, "\xfd\x00\x00\x10")), false, "more than 250 columns"},
		{"a file of this machine", after(mysqlPacket(1, "\xfb/etc/passwd")), false, "more than 250 columns"},
		{"another answer after a success", after(mysqlPacket(1, "\x00\x00\x00\x0a\x00\x00\x00") + mysqlPacket(2, "\xfe"+string(most[:]))), false, "announces another"},
		{"another answer after rows", after(mysqlPacket(1, "\x01") + column + mysqlPacket(3, "\xfe\x00\x00\x0a\x00") + mysqlPacket(4, "\xfe"+string(most[:]))), false, "announces another"},
		{"an endless answer", after("\xff\xff\xff\x01"), true, "a packet of 16777215 bytes"},
	})
}

// postgresMessage is a message of PostgreSQL.
func postgresMessage(kind string, body string) string {
	return kind + string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))) + body
}

func TestAHostilePostgresIsAnError(t *testing.T) {
	t.Parallel()
	login := postgresMessage("R", "\x00\x00\x00\x00")
	ready := login + postgresMessage("S", "client_encoding\x00UTF8\x00") + postgresMessage("S", "standard_conforming_strings\x00on\x00") + postgresMessage("Z", "I")
	var parameters bytes.Buffer
	for range 1000 {
		parameters.WriteString(postgresMessage("S", "\x00\x00"))
	}
	each(t, func(addr string) string { return "postgres://u:p@" + addr + "/db?sslmode=disable" }, []hostile{
		{"a login of a negative length", []string{"", "R\xff\xff\xff\xff"}, false, "a message of 4294967291 bytes"},
		{"endless parameters", []string{"", login + parameters.String()}, true, "more than 131072 pieces"},
		{"a row of 1 GB", []string{"", ready, "D\x3f\xff\xff\xf0"}, false, "a message of 1073741804 bytes"},
		{"a row shorter than its length", []string{"", ready, "D\x00\x00\x00\x03"}, false, "a message of -1 bytes"},
		{"endless notices", []string{"", ready, strings.Repeat(postgresMessage("N", "SERROR\x00M"+strings.Repeat("x", 60_000)+"\x00\x00"), 16)}, true, "more than 1 MiB"},
	})
}

// The drivers' connections are bounded by what was asked.
func TestOnlyAListingIsReadPastAMegabyte(t *testing.T) {
	t.Parallel()
	parse := func(statement string) string { return postgresMessage("P", "\x00"+statement+"\x00\x00\x00") }
	bind := postgresMessage("B", "\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0b ORDER BY k\x00\x00")
	for _, test := range []struct {
		check func() dial.Check
		sent  string
		lists bool
	}{
		{postgresCheck, parse("SELECT k FROM t WHERE k >= $1 ORDER BY k") + bind, true},
		{postgresCheck, parse("SELECT k FROM t WHERE k = $1") + bind, false},
		{postgresCheck, "", false},
		{mysqlCheck, mysqlPacket(0, "\x03SELECT k FROM t WHERE k >= 'a' ORDER BY k LIMIT 18446744073709551615"), true},
		{mysqlCheck, mysqlPacket(0, "\x03SELECT k FROM t WHERE k = 'a' LIMIT 2"), false},
		{mysqlCheck, mysqlPacket(0, "\x03UPDATE t SET v = ' LIMIT 18446744073709551615'"), false},
	} {
		guard := &dial.Guard{Check: test.check()}
		guard.Sent([]byte(test.sent))
		row := postgresMessage("D", strings.Repeat("x", 60_000))
		if _, mysql := guard.Check.(*mysqlPackets); mysql {
			row = mysqlPacket(0, mysqlGreeting+strings.Repeat("x", 60_000))
		}
		var err error
		for range 20 {
			err = guard.Received([]byte(row))
		}
		if (err == nil) != test.lists || err != nil && !strings.Contains(err.Error(), "more than 1 MiB") {
			t.Errorf("%.60q: %v", test.sent, err)
		}
	}
}
