package respapi_test

import (
	"strings"
	"testing"
)

// Arguments cost memory also where they are empty.
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
