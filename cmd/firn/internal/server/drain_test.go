package server_test

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/server"
)

// A client decides when its request ends, so it must not decide whether the process has failed.
func TestARequestThatNeverEndsIsCutOffWithoutAnError(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\n", func(s *server.Server) {
		s.SetTimeouts(time.Minute, time.Minute, time.Minute, time.Minute)
		s.SetDrain(10 * time.Millisecond)
	})
	c := dial(t, v.addr)
	if _, err := io.WriteString(c, "POST /v1/ids/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // it is in flight
		t.Fatalf("%q, %v", line, err)
	}
	v.stop() // fails if the server returns an error
	if !strings.Contains(v.log.String(), "requests still in flight were cut off") {
		t.Errorf("%s", v.log)
	}
}
