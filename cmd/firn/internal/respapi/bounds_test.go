package respapi_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/respapi"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

func TestATransactionThatStaysOpenIsGivenUpAndFreed(t *testing.T) {
	_, service, address := serve(t, kinds, func(c *respapi.Config) { c.TransactionTimeout = 50 * time.Millisecond })

	c := dial(t, address)
	for _, command := range []string{"MULTI", "ECHO " + strings.Repeat("x", 10_000)} {
		c.ask(command)
	}
	used := func() int { return service.Shares().Used(share.Memory) }
	if used() < 10_000 {
		t.Errorf("%d bytes of the transaction are counted", used())
	}
	for deadline := time.Now().Add(10 * time.Second); used() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are kept", used())
		}
	}
	if got := c.ask("ECHO x"); got != "+QUEUED" {
		t.Error(got)
	}
	if got := c.ask("EXEC"); !strings.HasPrefix(got, "-EXECABORT Transaction discarded because it was open for more than 50ms") {
		t.Error(got)
	}
	if got := c.ask("PING"); got != "+PONG" {
		t.Errorf("the connection is of use no more: %s", got)
	}
}

// However a transaction ends, its memory is free.
func TestTheMemoryOfATransactionIsGivenBack(t *testing.T) {
	_, service, address := serve(t, kinds)
	long := "ECHO " + strings.Repeat("x", 10_000)
	for _, end := range []string{"EXEC", "DISCARD", "RESET", "QUIT", "EXEC x", "ECHO " + strings.Repeat("x", 30_000)} {
		c := dial(t, address)
		c.send("MULTI\r\n" + strings.Repeat(long+"\r\n", 25) + end + "\r\n")
		if strings.HasPrefix(end, "ECHO") {
			for range 26 {
				c.reply()
			}
			if got := c.reply(); !strings.HasPrefix(got, "-ERR too many commands after MULTI") {
				t.Error(got)
			}
		} else {
			for range 26 {
				c.reply()
			}
			c.reply()
		}
		for deadline := time.Now().Add(10 * time.Second); service.Shares().Used(share.Memory) > 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%.20s: %d bytes are kept", end, service.Shares().Used(share.Memory))
			}
		}
	}
}

func TestOneAddressCannotFillTheMemoryWithTransactions(t *testing.T) {
	_, service, address := serve(t, kinds)
	service.Shares().Limit(share.Limits{HTTP: 10, Redis: 1000, Requests: 10, Percent: 1}) // about a megabyte
	refused := 0
	var held []*client
	for range 10 {
		c := dial(t, address)
		held = append(held, c)
		c.send("MULTI\r\n" + strings.Repeat("ECHO "+strings.Repeat("x", 20_000)+"\r\n", 12))
		c.reply()
		for range 12 {
			if got := c.reply(); strings.HasPrefix(got, "-TRYAGAIN overloaded: too many bytes") {
				refused++
				break
			} else if got != "+QUEUED" {
				t.Fatal(got)
			}
		}
	}
	if _, each := service.Shares().Of(share.Memory); refused == 0 || service.Shares().Used(share.Memory) > each {
		t.Errorf("%d of 10 were refused, and %d bytes are in use", refused, service.Shares().Used(share.Memory))
	}
	other := dial(t, address)
	if got := other.ask("INCR items"); got != ":1" {
		t.Errorf("an ordinary command of the same address: %s", got)
	}
	for _, c := range held {
		_ = c.Close()
	}
}

// A connection keeps no more of an unfinished command than what has come.
func TestUnfinishedCommandsAreBounded(t *testing.T) {
	_, service, address := serve(t, kinds)
	service.Shares().Limit(share.Limits{HTTP: 10, Redis: 1000, Requests: 10, Percent: 1})
	first := dial(t, address)
	first.send("*2\r\n$4\r\nECHO\r\n$3\r\nab")
	used := func() int { return service.Shares().Used(share.Memory) }
	for deadline := time.Now().Add(10 * time.Second); used() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not counted")
		}
	}
	if n := used(); n > 64 {
		t.Errorf("it occupies %d bytes", n)
	}
	refused := make(chan string, 40)
	for range 40 {
		c := dial(t, address)
		c.send("*3\r\n$4\r\nECHO\r\n$32000\r\n" + strings.Repeat("x", 32_000) + "\r\n$32000\r\n" + strings.Repeat("x", 25_000))
		go func() {
			text, _ := io.ReadAll(c)
			refused <- string(text)
		}()
	}
	if text := <-refused; !strings.HasPrefix(text, "-TRYAGAIN overloaded: too many bytes") {
		t.Errorf("%q", text)
	}
	if _, each := service.Shares().Of(share.Memory); used() > each {
		t.Errorf("%d bytes are in use", used())
	}
	first.send("c\r\n")
	if got := first.reply(); got != "abc" {
		t.Errorf("the rest of a command: %q", got)
	}
	if got := dial(t, address).ask("INCR items"); !strings.HasPrefix(got, ":") {
		t.Error(got)
	}
}
