package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
)

// In every protocol, a large answer frees its room when it is written or when its client has
// disconnected.
func TestALargeAnswerFreesItsRoom(t *testing.T) {
	v := serve(t, "limits: {batch: 2000000}\nnamespaces: {orders: {kind: segment, min_step: 1000000, max_step: 1000000}}\n")
	const count = 1_500_000 // three of them are more than there is room for
	client := fresh(t)
	remote := firnv1connect.NewIDServiceClient(client, "http://"+v.addr, connect.WithReadMaxBytes(1<<30))
	ask := func(path string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+v.addr+path, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(req)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		n, err := io.Copy(io.Discard, answer.Body)
		if answer.StatusCode != http.StatusOK || n < count {
			return fmt.Errorf("%s, %d bytes, %w", answer.Status, n, err)
		}
		return err
	}
	// Two clients disconnect without reading.
	leave := func(t *testing.T, addr, request string) {
		t.Helper()
		for range 2 {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, request); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
		}
	}
	for name, once := range map[string]func() error{
		"http":   func() error { return ask(fmt.Sprintf("/v1/ids/orders?count=%d", count)) },
		"tinyid": func() error { return ask(fmt.Sprintf("/tinyid/id/nextId?bizType=orders&batchSize=%d", count)) },
		"rpc": func() error {
			n := int32(count)
			answer, err := remote.Generate(t.Context(), connect.NewRequest(&firnv1.GenerateRequest{Namespace: "orders", Count: &n}))
			if err == nil && len(answer.Msg.GetIds()) != count {
				err = fmt.Errorf("%d ids", len(answer.Msg.GetIds()))
			}
			return err
		},
		"stream": func() error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := int32(count)
			from, err := remote.GenerateStream(ctx, connect.NewRequest(&firnv1.GenerateStreamRequest{Namespace: "orders", Batch: &n}))
			if err != nil {
				return err
			}
			defer from.Close()
			if !from.Receive() {
				return from.Err()
			}
			return nil // and disconnects
		},
		"resp": func() error {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", v.redis)
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := fmt.Fprintf(c, "FIRN.NEXT orders COUNT %d\r\n", count); err != nil {
				return err
			}
			lines := bufio.NewScanner(c)
			for i := 0; i <= count && lines.Scan(); i++ {
				if strings.HasPrefix(lines.Text(), "-") {
					return fmt.Errorf("%s", lines.Text())
				}
			}
			return lines.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			leave(t, v.addr, fmt.Sprintf("POST /v1/ids/orders?count=%d HTTP/1.1\r\nHost: localhost\r\n\r\n", count))
			leave(t, v.redis, fmt.Sprintf("FIRN.NEXT orders COUNT %d\r\n", count))
			for range 4 {
				// The server soon notices a disconnect; a request waits a second for room.
				deadline := time.Now().Add(5 * time.Second)
				err := once()
				for err != nil && time.Now().Before(deadline) {
					err = once()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
