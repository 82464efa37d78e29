package respapi_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/respapi"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

// patience is how long a test waits for something that must happen.
const patience = 20 * time.Second

// kinds has a namespace for each kind of answer.
var kinds = settings.Config{Namespaces: map[string]settings.Namespace{
	"orders": {Pooled: settings.Pooled{Layout: "41/0/0/22"}}, // more ids a millisecond than the tests request
	"items":  {Kind: "segment"},
	"txn":    {Kind: "sequence"},
	"uid":    {Kind: "uuid"},
	"carts":  {Prefixed: settings.Prefixed{Prefix: "cart"}, Pooled: settings.Pooled{Layout: "41/0/0/22"}},
}}

// serve serves on loopback until the test ends.
func serve(t testing.TB, cfg settings.Config, change ...func(*respapi.Config)) (*respapi.Server, *issuing.Service, string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	service, err := issuing.Open(context.Background(), issuing.Config{
		Settings: cfg, Base: lease.Config{}, Store: memstore.New(nil), Log: slog.New(slog.DiscardHandler), Registry: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	with := respapi.Config{Service: service, Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&with)
	}
	s := respapi.New(with)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, service, listener.Addr().String()
}

// A client is the test's side of a connection.
type client struct {
	t testing.TB
	*net.TCPConn
	lines *bufio.Reader
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it may have been closed
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{t, c.(*net.TCPConn), bufio.NewReader(c)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// line returns the next line without its end.
func (c *client) line() string {
	c.t.Helper()
	line, err := c.lines.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%q: %v", line, err)
	}
	return strings.TrimSuffix(line, "\r\n")
}

// ask sends an inline command and returns the whole reply, with its lines joined by spaces.
func (c *client) ask(command string) string {
	c.t.Helper()
	c.send(command + "\r\n")
	return c.reply()
}

func (c *client) reply() string {
	c.t.Helper()
	first := c.line()
	parts := 0
	switch first[0] {
	case '$':
		if first == "$-1" {
			return first
		}
		text := make([]byte, atoi(c.t, first[1:])+2)
		if _, err := io.ReadFull(c.lines, text); err != nil {
			c.t.Fatal(err)
		}
		return string(text[:len(text)-2])
	case '*', '~':
		parts = atoi(c.t, first[1:])
	case '%':
		parts = 2 * atoi(c.t, first[1:])
	}
	all := []string{first}
	for range parts {
		all = append(all, c.reply())
	}
	return strings.Join(all, " ")
}

// number reads an integer reply.
func (c *client) number() int64 {
	c.t.Helper()
	line := c.line()
	if line[0] != ':' {
		c.t.Fatalf("%s is no integer", line)
	}
	return int64(atoi(c.t, line[1:]))
}

const incr = "*2\r\n$4\r\nINCR\r\n$%d\r\n%s\r\n"

func atoi(t testing.TB, text string) int {
	t.Helper()
	n := 0
	for _, d := range text {
		if d < '0' || d > '9' {
			t.Fatalf("%q is no number", text)
		}
		n = 10*n + int(d-'0')
	}
	return n
}

// ended fails unless the server closes the connection, with nothing more to read.
func (c *client) ended() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.lines); len(rest) > 0 || err != nil && isTimeout(err) {
		c.t.Errorf("the connection is open, with %q: %v", rest, err)
	}
}

func isTimeout(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded)
}

func TestEveryCommandIsAnswered(t *testing.T) {
	_, _, address := serve(t, kinds)
	c := dial(t, address)
	for _, step := range []struct{ say, want string }{
		{"PING", `\+PONG`},
		{"ping hello", `hello`},
		{"PING a b", `-ERR wrong number of arguments for 'ping' command`},
		{"ECHO \"a b\"", `a b`},
		{"INCR orders", `:[1-9]\d{14,18}`},
		{"incr items", `:1`},
		{"INCRBY items 10", `:11`},
		{"INCRBY items 1", `:12`},
		{"INCRBY items 5000", `:5012`},
		{"INCR items", `:5013`},
		{"INCRBY txn 5", `:5`},
		{"InCr txn", `:6`},
		{"INCRBY orders 1", `:[1-9]\d{14,18}`},
		{"INCRBY orders 2", `-FIRN not_consecutive: .*, of kind snowflake, .* FIRN\.NEXT orders COUNT 2`},
		{"INCRBY carts 2", `-FIRN not_consecutive: .*`},
		{"INCRBY uid 2", `-FIRN not_consecutive: .*`},
		{"INCRBY items 0", `-FIRN unsupported: INCRBY: a namespace has no value to read: .*`},
		{"INCRBY items -1", `-FIRN unsupported: INCRBY: ids never go back\. INCR items .*`},
		{"INCRBY items 100001", `-FIRN batch_too_large: .*100000.*`},
		{"INCRBY items x", `-ERR value is not an integer or out of range`},
		{"INCRBY items", `-ERR wrong number of arguments for 'incrby' command`},
		{"INCR uid", `-FIRN not_a_number: .*, of kind uuid, .* FIRN\.NEXT uid`},
		{"INCR carts", `-FIRN not_a_number: .* FIRN\.NEXT carts`},
		{"INCR nothere", `-FIRN unknown_namespace: .*`},
		{"INCRBY nothere 3", `-FIRN unknown_namespace: .*`},
		{"INCR a:b", `-FIRN unknown_namespace: .*; names have no colon: if your client puts a prefix before its keys, turn that off`},
		{"INCR", `-ERR wrong number of arguments for 'incr' command`},
		{"INCR a b", `-ERR wrong number of arguments for 'incr' command`},
		{"FIRN.NEXT items", `\*1 :5014`},
		{"firn.next items count 3", `\*3 :5015 :5016 :5017`},
		{"FIRN.NEXT uid COUNT 2", `\*2 [0-9a-f-]{36} [0-9a-f-]{36}`},
		{"FIRN.NEXT carts", `\*1 cart_[0-9A-Z]{13}`},
		{"FIRN.NEXT items COUNT", `-ERR syntax error: write FIRN.NEXT name, or FIRN.NEXT name COUNT n`},
		{"FIRN.NEXT items NUMBER 2", `-ERR syntax error: write .*`},
		{"FIRN.NEXT items COUNT 0", `-FIRN bad_count: .*`},
		{"FIRN.NEXT items COUNT 1000000000000", `-FIRN batch_too_large: .*`},
		{"FIRN.NEXT items COUNT 99999999999999999999", `-ERR value is not an integer or out of range`},
		{"FIRN.DECODE orders 4194304", `\*16 kind snowflake id 4194304 layout 41/0/0/22 time 2025-01-01T00:00:00\.001Z tick 1 datacenter :0 worker :0 sequence :0`},
		{"FIRN.DECODE items 1", `\*6 kind segment id 1 note a counter made this id: .*`},
		{"FIRN.DECODE items 00000000010 FORMAT base62", `\*6 kind segment id 62 note .*`},
		{"firn.decode items abc format roman", `-FIRN bad_format: .*`},
		{"FIRN.DECODE items abc base62", `-ERR syntax error: write FIRN\.DECODE name id, or .*`},
		{"FIRN.DECODE items abc ENCODING base62", `-ERR syntax error: write .*`},
		{"FIRN.DECODE items", `-ERR wrong number of arguments for 'firn\.decode' command`},
		{"FIRN.DECODE uid 1", `-FIRN bad_id: "1" is not a valid UUID.*namespace uid, of kind uuid, makes UUIDs of version 7; .*`},
		{"FIRN.DECODE orders x!", `-FIRN bad_id: .*`},
		{"SELECT 0", `\+OK`},
		{"SELECT 1", `-ERR DB index is out of range`},
		{"SELECT x", `-ERR value is not an integer or out of range`},
		{"CLIENT SETNAME shop", `\+OK`},
		{"CLIENT GETNAME", `shop`},
		{"CLIENT SETNAME \"a b\"", `-ERR Client names cannot contain spaces, newlines or special characters\.`},
		{"CLIENT SETINFO LIB-NAME x", `\+OK`},
		{"CLIENT SETINFO lib-ver 1.2", `\+OK`},
		{"CLIENT SETINFO colour red", `-ERR Unrecognized option 'colour'`},
		{"CLIENT ID", `:1`},
		{"CLIENT INFO", `id=1 addr=127.0.0.1:\d+ .* name=shop .* lib-name=x lib-ver=1.2 resp=2\n`},
		{"CLIENT NO-EVICT on", `\+OK`},
		{"CLIENT TRACKING off", `\+OK`},
		{"CLIENT TRACKINGINFO", `\*6 flags \*1 off redirect :-1 prefixes \*0`},
		{"CLIENT CACHING yes", `-ERR CLIENT CACHING can be called only when .*`},
		{"CLIENT TRACKING on OPTIN", `\+OK`},
		{"CLIENT GETREDIR", `:0`},
		{"CLIENT CACHING yes", `\+OK`},
		{"CLIENT CACHING perhaps", `-ERR syntax error`},
		{"CLIENT TRACKINGINFO", `\*6 flags \*1 on redirect :0 prefixes \*0`},
		{"CLIENT TRACKING on BCAST", `-ERR CLIENT TRACKING BCAST is not supported: OPTIN, OPTOUT and NOLOOP are`},
		{"CLIENT TRACKING perhaps", `-ERR syntax error`},
		{"CLIENT TRACKING off", `\+OK`},
		{"CLIENT GETREDIR", `:-1`},
		{"CLIENT REPLY off", `-ERR CLIENT REPLY off is not supported.*`},
		{"CLIENT KILL x", `-ERR unknown subcommand 'KILL'\. Try CLIENT HELP\.`},
		{"CLIENT GETNAME x", `-ERR wrong number of arguments for 'client\|getname' command`},
		{"CONFIG GET save appendonly", `\*4 save  appendonly no`},
		{"CONFIG GET max*", `\*4 maxmemory 0 maxclients 10000`},
		{"CONFIG GET [", `\*0`},
		{"CONFIG SET save x", `-ERR unknown subcommand 'SET'\. Try CONFIG HELP\.`},
		{"COMMAND COUNT", `:34`},
		{"COMMAND INFO incr nothere", `\*2 \*10 incr :2 \*2 \+write \+fast :1 :1 :1 \*0 \*0 \*0 \*0 \$-1`},
		{"COMMAND DOCS incr nothere", `\*2 incr \*6 summary .* since 1.0.0 group ids`},
		{"COMMAND LIST", `\*34 auth .*`},
		{"COMMAND", `\*34 \*10 auth .*`},
		{"AUTH secret", `\+OK`},
		{"AUTH user secret", `\+OK`},
		{"AUTH a b c", `-ERR syntax error`},
		{"HELLO 4", `-NOPROTO unsupported protocol version`},
		{"HELLO x", `-ERR Protocol version is not an integer or out of range`},
		{"HELLO 2 COLOUR red", `-ERR Syntax error in HELLO option 'COLOUR'`},
		{"HELLO", `\*14 server firn version 7\.0\.0 proto :2 id :1 mode standalone role master modules \*0`},
		{"HELLO 3 AUTH user secret SETNAME till", `%7 server firn version 7\.0\.0 proto :3 .*`},
		{"CLIENT GETNAME", `till`},
		{"CONFIG GET save", `%1 save `},
		{"FIRN.DECODE orders 4194304", `%8 kind snowflake id 4194304 .*`},
		{"RESET", `\+RESET`},
		{"CLIENT GETNAME", `\$-1`},
		{"NOPE x", `-ERR unknown command 'NOPE', with args beginning with: 'x' `},
		{"averyveryverylongcommand", `-ERR unknown command 'averyveryverylongcommand', with args beginning with: `},
		{"MULTI", `\+OK`},
		{"MULTI", `-ERR MULTI calls can not be nested`},
		{"DISCARD", `\+OK`},
		{"MULTI", `\+OK`},
		{"INCR items", `\+QUEUED`},
		{"INCRBY items 1", `\+QUEUED`},
		{"INCR uid", `\+QUEUED`},
		{"EXEC", `\*3 :5018 :5019 -FIRN not_a_number: .*`},
		{"MULTI", `\+OK`},
		{"NOSUCH", `-ERR unknown command .*`},
		{"EXEC", `-EXECABORT Transaction discarded because of previous errors\.`},
		{"EXEC", `-ERR EXEC without MULTI`},
		{"DISCARD", `-ERR DISCARD without MULTI`},
	} {
		if got := c.ask(step.say); !regexp.MustCompile(`^` + step.want + `$`).MatchString(got) {
			t.Errorf("%s: %q, want %s", step.say, got, step.want)
		}
	}
	info := c.ask("INFO")
	for _, want := range []string{"# Server\r\nredis_version:7.", "loading:0", "role:master", "connected_clients:1\r\n", "# Memory\r\nused_memory:"} {
		if !strings.Contains(info, want) {
			t.Errorf("INFO lacks %q: %s", want, info)
		}
	}
	if info := c.ask("INFO clients persistence"); strings.Contains(info, "role:") || !strings.Contains(info, "loading:0") {
		t.Errorf("INFO clients persistence: %s", info)
	}
	if got := c.ask("QUIT"); got != "+OK" {
		t.Errorf("QUIT: %s", got)
	}
	c.ended()
}

func TestNamespacesAreMadeOnFirstUse(t *testing.T) {
	_, _, address := serve(t, settings.Config{})
	c := dial(t, address)
	a, b := c.ask("INCR a"), c.ask("INCR b")
	if !regexp.MustCompile(`^:\d{15,19}$`).MatchString(a) || a >= b {
		t.Errorf("%s, then %s", a, b)
	}
	if got := c.ask("INCR a/b"); !strings.HasPrefix(got, "-FIRN bad_request: ") || !strings.Contains(got, "namespace name") {
		t.Error(got)
	}
}

func TestAProtocolErrorIsAnsweredAndEndsTheConnection(t *testing.T) {
	_, _, address := serve(t, kinds)
	for in, want := range map[string]string{
		"*2\r\n$x\r\n":              "-ERR Protocol error: invalid bulk length",
		"*1\r\nPING\r\n":            "-ERR Protocol error: expected '$', got 'P'",
		"*99999999\r\n":             "-ERR Protocol error: invalid multibulk length",
		"*1\r\n$1000000\r\n":        "-ERR Protocol error: invalid bulk length",
		"PING \"x\r\n":              "-ERR Protocol error: unbalanced quotes in request",
		strings.Repeat("x", 70_000): "-ERR Protocol error: too big inline request",
		"*1\r\n$4\r\nPINGxx":        "-ERR Protocol error: expected CRLF after bulk",
		"*5\r\n" + strings.Repeat("$20000\r\n"+strings.Repeat("x", 20_000)+"\r\n", 5): "-ERR Protocol error: too big request",
	} {
		c := dial(t, address)
		c.send("PING\r\n")
		if got := c.line(); got != "+PONG" {
			t.Fatal(got)
		}
		c.send(in)
		if got := c.line(); got != want {
			t.Errorf("%.40q: %s, want %s", in, got, want)
		}
		c.ended()
	}
	for _, in := range []string{"POST /v1 HTTP/1.1\r\nHost: x\r\n\r\n", "host: 127.0.0.1\r\n"} {
		c := dial(t, address)
		c.send(in)
		c.ended()
	}
}
