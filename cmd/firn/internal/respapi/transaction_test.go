package respapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store/storetest/servers"
)

// own is how a server describes itself in its answer to HELLO.
var own = regexp.MustCompile(`server \w+ version \S+ proto (:\d) id :\d+`)

func TestTransactionsAreAsInRedis(t *testing.T) {
	const secret = "a-secret-of-a-test"
	sum := sha256.Sum256([]byte(secret))
	_, _, firn := serve(t, settings.Config{Tokens: []settings.Token{{Name: "shop", SHA256: hex.EncodeToString(sum[:]), Namespaces: []string{"*"}}}})
	redis := servers.Redis(t, "--requirepass", secret).Addr()
	for _, commands := range []string{
		"MULTI", // unauthenticated clients may not use it
		"AUTH " + secret + "; MULTI; HELLO 3; PING; EXEC; PING",
		"AUTH " + secret + "; MULTI; HELLO 3 AUTH default " + secret + " SETNAME a; CLIENT GETNAME; EXEC; CLIENT GETNAME",
		"AUTH " + secret + "; MULTI; AUTH " + secret + "; PING; EXEC",
		"AUTH " + secret + "; MULTI; AUTH default wrong; PING; EXEC; PING",
		"AUTH " + secret + "; MULTI; HELLO 3; DISCARD; CLIENT GETNAME",
		"AUTH " + secret + "; MULTI; HELLO 9; EXEC",
		"AUTH " + secret + "; MULTI; AUTH; EXEC",
		"AUTH " + secret + "; MULTI; PING; RESET; EXEC; AUTH " + secret + "; EXEC",
		"AUTH " + secret + "; MULTI; RESET x; EXEC",
		"AUTH " + secret + "; HELLO 3; MULTI; PING; RESET; AUTH " + secret + "; CLIENT GETNAME",
		"AUTH " + secret + "; MULTI; PING; QUIT",
		"AUTH " + secret + "; MULTI; MULTI; PING; EXEC",
		"AUTH " + secret + "; MULTI; NOPE; MULTI; EXEC",
		"AUTH " + secret + "; MULTI; EXEC x; EXEC",
		"AUTH " + secret + "; MULTI; DISCARD x; EXEC; EXEC x",
	} {
		there, here := dial(t, redis), dial(t, firn)
		for command := range strings.SplitSeq(commands, "; ") {
			want, got := own.ReplaceAllString(there.ask(command), "proto $1"), own.ReplaceAllString(here.ask(command), "proto $1")
			if got != want {
				t.Errorf("%s, at %s: %q, Redis says %q", commands, command, got, want)
			}
		}
		if strings.HasSuffix(commands, "QUIT") {
			there.ended()
			here.ended()
		}
	}
}

// Empty arguments cost memory too.
func TestATransactionOfEmptyArgumentsIsBounded(t *testing.T) {
	_, _, address := serve(t, kinds)
	c := dial(t, address)
	if got := c.ask("MULTI"); got != "+OK" {
		t.Fatal(got)
	}
	command := "*16\r\n$4\r\nINFO\r\n" + strings.Repeat("$0\r\n\r\n", 15)
	queued := 0
	for range 1025 {
		c.send(command)
		switch got := c.reply(); {
		case got == "+QUEUED":
			queued++
		case !strings.HasPrefix(got, "-ERR too many commands after MULTI"):
			t.Fatal(got)
		}
	}
	if queued != 1024 {
		t.Errorf("%d commands of 16 arguments were kept", queued)
	}
	if got := c.ask("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
		t.Error(got)
	}
}

func TestATransactionAsksForNoMoreIDsThanOneAnswerHas(t *testing.T) {
	limited := kinds
	limited.Limits.Batch = new(10)
	_, _, address := serve(t, limited)
	for _, c := range []struct{ commands, last, exec string }{
		{"FIRN.NEXT items COUNT 6; FIRN.NEXT items COUNT 4; INCR items", "+QUEUED", "*3 "},
		{"FIRN.NEXT items COUNT 6; FIRN.NEXT items COUNT 5", "-FIRN batch_too_large: the commands after MULTI ask for more than 10 ids", "-EXECABORT"},
		{"FIRN.NEXT items COUNT 6; firn.next items count 9223372036854775807", "-FIRN batch_too_large: ", "-EXECABORT"},
		{"FIRN.NEXT items COUNT -9223372036854775808; FIRN.NEXT items COUNT 11", "-FIRN batch_too_large: ", "-EXECABORT"},
	} {
		conn := dial(t, address)
		conn.ask("MULTI")
		var got string
		for command := range strings.SplitSeq(c.commands, "; ") {
			got = conn.ask(command)
		}
		if !strings.HasPrefix(got, c.last) {
			t.Errorf("%s: %s", c.commands, got)
		}
		if got := conn.ask("EXEC"); !strings.HasPrefix(got, c.exec) {
			t.Errorf("EXEC of %s: %s", c.commands, got)
		}
	}
}

func TestACommandHasFewArguments(t *testing.T) {
	_, _, address := serve(t, kinds)
	c := dial(t, address)
	for _, command := range []string{"CONFIG GET", "COMMAND INFO", "COMMAND DOCS", "SCRIPT EXISTS"} {
		if got := c.ask(command + strings.Repeat(" x*x*x", 16)); strings.HasPrefix(got, "-") {
			t.Errorf("%s of 16: %s", command, got)
		}
		if got := c.ask(command + strings.Repeat(" x*x*x", 17)); !strings.Contains(got, "it has 19, at most 18 are allowed") {
			t.Errorf("%s of 17: %s", command, got)
		}
	}
}
