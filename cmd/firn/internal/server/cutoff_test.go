package server_test

import (
	"io"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/server"
)

// The answers are larger than the buffers between server and client, so they are in flight until the client reads them.
func TestClientsThatReadNoAnswerDoNotMakeAShutdownFail(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\nlimits: {batch: 500000, share: 100}\n", func(s *server.Server) { s.SetDrain(100 * time.Millisecond) })
	for addr, request := range map[string]string{
		v.addr:  "GET /v1/ids/orders?count=500000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		v.redis: "FIRN.NEXT orders COUNT 500000\r\n",
	} {
		c := dial(t, addr)
		if err := c.SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 10)); err != nil { // the answer has begun
			t.Fatal(err)
		}
	}
	v.stop() // it reports an error
	v.log.has(t, `msg="requests still in flight were cut off" protocol=http`, "protocol=resp after=100ms")
}

// docker stop kills a process after 10 s, and its workers would be held until their fences have passed.
func TestAServerStopsWithinTenSeconds(t *testing.T) {
	const linger, release = time.Second, time.Second
	if longest := linger + server.LongestStop + release; longest >= 10*time.Second {
		t.Errorf("it takes up to %v", longest)
	}
}
