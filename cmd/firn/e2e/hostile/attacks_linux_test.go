package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	health "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
)

// declared is a configuration that serves everyone, with namespaces of several kinds.
const declared = "store: 'memory:'\nnamespaces: {orders: {}, users: {kind: segment}, uid: {kind: uuid}}\nanonymous: ['*']\nanonymous_metrics: true\n"

// open is one whose namespaces are made on first use.
const open = "store: 'memory:'\nanonymous: ['*']\nanonymous_metrics: true\n"

// scarce is one whose ids all callers want are few: 25,600 in a second.
const scarce = "store: 'memory:'\nnamespaces: {orders: {layout: sonyflake}}\nanonymous: ['*']\nanonymous_metrics: true\n"

// An attack takes what all callers share, for itself, from one address.
type attack struct {
	name, config string
	run          func(ctx context.Context, v *target)
}

var attacks = slices.Concat(headAttacks, framedAttacks(overHTTP), framedAttacks(overGRPC), []attack{
	{"no attack", declared, func(context.Context, *target) {}}, // to compare: a busy machine delays others by itself
	{"MULTI without EXEC", declared, func(ctx context.Context, v *target) {
		// Commands of many small arguments cost the most memory for their bytes.
		command := "*3\r\n$6\r\nINCRBY\r\n$1\r\na\r\n$1\r\n1\r\n"
		v.hold(ctx, v.resp, 4000, 50, func(c *conn) {
			_, _ = io.WriteString(c, "MULTI\r\n"+strings.Repeat(command, 4096))
			_, _ = io.WriteString(c, strings.Repeat("*2\r\n$4\r\nECHO\r\n$60\r\n"+strings.Repeat("x", 60)+"\r\n", 100))
		})
	}},
	{"idle HTTP connections", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 12_000, 100, func(c *conn) { _, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n") })
	}},
	{"HTTP headers that never end", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 12_000, 100, func(c *conn) {
			_, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 15<<10))
		})
	}},
	{"HTTP bodies that never end", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 12_000, 100, func(c *conn) {
			_, _ = io.WriteString(c, "POST /tinyid/id/nextId HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 65000\r\n\r\n"+strings.Repeat("x", 64_000))
		})
	}},
	{"HTTP answers left unread", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 12_000, 100, func(c *conn) {
			_, _ = io.WriteString(c, strings.Repeat("GET /v1/ids/uid?count=1000 HTTP/1.1\r\nHost: x\r\n\r\n", 200))
		})
	}},
	{"large HTTP answers left unread", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 12_000, 100, func(c *conn) {
			_, _ = io.WriteString(c, strings.Repeat("GET /v1/ids/uid?count=100000 HTTP/1.1\r\nHost: x\r\n\r\n", 200))
		})
	}},
	{"HTTP requests without a pause", declared, func(ctx context.Context, v *target) {
		v.flood(ctx, v.http, 500, "GET /v1/ids/uid?count=1000 HTTP/1.1\r\nHost: x\r\n\r\n")
	}},
	{"more ids than a layout makes", scarce, func(ctx context.Context, v *target) {
		var group sync.WaitGroup
		group.Go(func() { v.flood(ctx, v.http, 10, "GET /v1/ids/orders?count=100000 HTTP/1.1\r\nHost: x\r\n\r\n") })
		group.Go(func() { v.flood(ctx, v.http, 10, "GET /v1/ids/orders?count=1000 HTTP/1.1\r\nHost: x\r\n\r\n") })
		group.Go(func() { v.flood(ctx, v.resp, 10, "FIRN.NEXT orders COUNT 1000\r\n") })
		group.Wait()
	}},
	{"metrics without a pause", declared, func(ctx context.Context, v *target) {
		v.flood(ctx, v.http, 500, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
	}},
	{"idle Redis connections", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.resp, 12_000, 100, func(c *conn) { _, _ = io.WriteString(c, "PING\r\n") })
	}},
	{"Redis commands that never end", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.resp, 12_000, 100, func(c *conn) {
			_, _ = io.WriteString(c, "*3\r\n$4\r\nECHO\r\n$32000\r\n"+strings.Repeat("x", 32_000)+"\r\n$32000\r\n"+strings.Repeat("x", 30_000))
		})
	}},
	{"Redis answers left unread", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.resp, 12_000, 100, func(c *conn) { _, _ = io.WriteString(c, strings.Repeat("FIRN.NEXT uid COUNT 1000\r\n", 400)) })
	}},
	{"Redis commands without a pause", declared, func(ctx context.Context, v *target) {
		v.flood(ctx, v.resp, 500, strings.Repeat("INCR users\r\n", 100))
	}},
	{"connections opened and closed", declared, func(ctx context.Context, v *target) {
		var group sync.WaitGroup
		for i := range 100 {
			group.Go(func() {
				for ctx.Err() == nil {
					c, err := v.connect(hostileAddress, []string{v.http, v.resp}[i%2])
					if err == nil {
						_ = c.Close()
					}
				}
			})
		}
		group.Wait()
	}},
	{"HTTP/2 requests whose bodies never end", declared, func(ctx context.Context, v *target) {
		v.streams(ctx, 60, 250, func(ctx context.Context, c *http.Client) error {
			body, w := io.Pipe()
			defer w.Close()
			go func() { _, _ = io.WriteString(w, strings.Repeat("x", 60_000)) }()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+v.http+"/tinyid/id/nextId", body)
			if err != nil {
				return err
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			answer, err := c.Do(r)
			if err != nil {
				return err
			}
			return answer.Body.Close()
		})
	}},
	{"namespaces made on first use", open, func(ctx context.Context, v *target) {
		v.names(ctx, http.MethodPost, func(i int) string { return fmt.Sprintf("/v1/ids/hostile-%d", i) })
	}},
	{"lists of namespaces left unread", open, func(ctx context.Context, v *target) {
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		v.names(short, http.MethodPost, func(i int) string { return fmt.Sprintf("/v1/ids/hostile-%d", i) })
		cancel()
		v.hold(ctx, v.http, 12_000, 100, func(c *conn) {
			_, _ = io.WriteString(c, strings.Repeat("GET /v1/namespaces HTTP/1.1\r\nHost: x\r\n\r\n", 20))
		})
	}},
	{"event streams left unread", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 12_000, 100, func(c *conn) { _, _ = io.WriteString(c, "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n") })
	}},
	{"event streams read slowly", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 12_000, 100, func(c *conn) {
			_, _ = io.WriteString(c, "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
			go func() {
				for few := make([]byte, 64); ; time.Sleep(100 * time.Millisecond) {
					if _, err := c.Read(few); err != nil {
						return
					}
				}
			}()
		})
	}},
	{"event streams over HTTP/2", declared, func(ctx context.Context, v *target) {
		v.streams(ctx, 60, 250, func(ctx context.Context, c *http.Client) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+v.http+"/v1/events", nil)
			if err != nil {
				return err
			}
			answer, err := c.Do(r)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return errors.New(answer.Status)
			}
			<-ctx.Done()
			return nil
		})
	}},
	{"CosId names", declared + "cosid: true\n", func(ctx context.Context, v *target) {
		v.names(ctx, http.MethodPatch, func(i int) string { return fmt.Sprintf("/segments/hostile/n%d?step=1099511627776", i) })
	}},
	{"CosId machines", declared + "cosid: true\n", func(ctx context.Context, v *target) {
		v.names(ctx, http.MethodPost, func(i int) string {
			return fmt.Sprintf("/machines/hostile%d?instanceId=i&stable=true&machineBit=10&safeGuardDuration=PT5M", i)
		})
	}},
})

// hold opens up to most connections with a number of openers, lets each begin, and keeps them all. It opens another for
// each that the server closes.
func (v *target) hold(ctx context.Context, to string, most, openers int, begin func(*conn)) {
	var group sync.WaitGroup
	places := make(chan struct{}, most)
	for range openers {
		group.Go(func() {
			for ctx.Err() == nil {
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				c, err := v.connect(hostileAddress, to)
				if err != nil {
					<-places
					time.Sleep(time.Millisecond)
					continue
				}
				_ = c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
				begin(c)
				group.Go(func() {
					defer func() { _ = c.Close(); <-places }()
					stop := context.AfterFunc(ctx, func() { _ = c.Close() })
					defer stop()
					// It must see the end and must not read: so it looks now and then.
					for ctx.Err() == nil && alive(c.Conn) {
						time.Sleep(200 * time.Millisecond)
					}
				})
			}
		})
	}
	group.Wait()
}

// flood sends a request again and again over each of many connections, and reads the answers.
func (v *target) flood(ctx context.Context, to string, connections int, request string) {
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			for ctx.Err() == nil {
				c, err := v.connect(hostileAddress, to)
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				go func() {
					for {
						if _, err := io.WriteString(c, request); err != nil {
							return
						}
					}
				}()
				_, _ = io.Copy(io.Discard, c)
				stop()
				_ = c.Close()
			}
		})
	}
	group.Wait()
}

// streams keeps calls open over HTTP/2, so many on each connection, and begins another for each that ends.
func (v *target) streams(ctx context.Context, connections, each int, call func(context.Context, *http.Client) error) {
	var group sync.WaitGroup
	for range connections {
		c := overHTTP2(hostileAddress)
		for range each {
			group.Go(func() {
				for ctx.Err() == nil {
					if call(ctx, c) != nil {
						select {
						case <-time.After(5 * time.Second): // without a pause it would be an attack on the processor instead
						case <-ctx.Done():
						}
					}
				}
			})
		}
	}
	group.Wait()
}

// watches watch the health.
func (v *target) watches(ctx context.Context, to string) {
	v.streams(ctx, 20, 250, func(ctx context.Context, c *http.Client) error {
		watch := connect.NewClient[health.HealthCheckRequest, health.HealthCheckResponse](c, "http://"+to+"/grpc.health.v1.Health/Watch", connect.WithGRPC())
		s, err := watch.CallServerStream(ctx, connect.NewRequest(&health.HealthCheckRequest{}))
		if err != nil {
			return err
		}
		defer s.Close()
		for s.Receive() {
		}
		return s.Err()
	})
}

func (v *target) slowStreams(ctx context.Context, to string) {
	v.streams(ctx, 20, 250, func(ctx context.Context, c *http.Client) error {
		return v.stream(ctx, c, to, "uid", 1000, 8*time.Second)
	})
}

func (v *target) fastStreams(ctx context.Context, to string) {
	v.streams(ctx, 20, 250, func(ctx context.Context, c *http.Client) error { return v.stream(ctx, c, to, "orders", 100_000, 0) })
}

// stream reads a stream of ids, with a pause before each message.
func (v *target) stream(ctx context.Context, c *http.Client, to, namespace string, batch int32, pause time.Duration) error {
	ids := firnv1connect.NewIDServiceClient(c, "http://"+to, connect.WithGRPC())
	s, err := ids.GenerateStream(ctx, connect.NewRequest(&firnv1.GenerateStreamRequest{Namespace: namespace, Batch: &batch}))
	if err != nil {
		return err
	}
	defer s.Close()
	for s.Receive() {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return s.Err()
}

// names sends requests for ever new names.
func (v *target) names(ctx context.Context, method string, path func(int) string) {
	var group sync.WaitGroup
	c := client(hostileAddress)
	defer c.CloseIdleConnections()
	const callers = 20
	for i := range callers {
		group.Go(func() {
			for n := i; ctx.Err() == nil; n += callers {
				r, err := http.NewRequestWithContext(ctx, method, "http://"+v.http+path(n), bytes.NewReader(nil))
				if err != nil {
					return
				}
				answer, err := c.Do(r)
				if err != nil {
					continue
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		})
	}
	group.Wait()
}

// alive reports whether the peer has not closed a connection. It reads nothing.
func alive(c net.Conn) bool {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false
	}
	open := true
	err = raw.Control(func(fd uintptr) { open = established(fd) })
	return err == nil && open
}
