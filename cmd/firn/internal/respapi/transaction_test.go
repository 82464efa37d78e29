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
	command := "*1024\r\n$4\r\nINFO\r\n" + strings.Repeat("$0\r\n\r\n", 1023)
	queued := 0
	for range 17 {
		c.send(command)
		switch got := c.reply(); {
		case got == "+QUEUED":
			queued++
		case !strings.HasPrefix(got, "-ERR too many commands after MULTI"):
			t.Fatal(got)
		}
	}
	if queued != 16 {
		t.Errorf("%d commands of 1,024 arguments were kept", queued)
	}
	if got := c.ask("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
		t.Error(got)
	}
}
