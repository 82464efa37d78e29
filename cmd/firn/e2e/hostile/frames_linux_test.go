package hostile

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
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

// ask begins a request with a number of fields beside those that it needs: GET, or a call of gRPC with a message.
func (f *framed) ask(path, message string, fields int) (stream uint32) {
	stream = f.begin(path, message, fields, true)
	if message != "" {
		_ = f.WriteData(stream, true, []byte(message))
	}
	return stream
}

// begin writes the head of a request, whole or not, without the message.
func (f *framed) begin(path, message string, fields int, whole bool) (stream uint32) {
	f.head.Reset()
	method := http.MethodGet
	if message != "" {
		method = http.MethodPost
	}
	all := []hpack.HeaderField{{Name: ":method", Value: method}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "localhost"}, {Name: ":path", Value: path}}
	if message != "" {
		all = append(all, hpack.HeaderField{Name: "content-type", Value: "application/grpc"}, hpack.HeaderField{Name: "te", Value: "trailers"})
	}
	for i := range fields {
		all = append(all, hpack.HeaderField{Name: "f" + strconv.Itoa(i), Value: "v"})
	}
	for _, field := range all {
		_ = f.pack.WriteField(field)
	}
	stream = f.fresh
	f.fresh += 2
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: f.head.Bytes(), EndStream: whole && message == "", EndHeaders: whole})
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

// A served is a port that speaks HTTP/2, and requests to it: for one id, for a large answer, and one that is refused.
type served struct {
	named              string
	port               func(*target) string
	one, large, failed [2]string // path and message
}

const (
	generate  = "/firn.v1.IDService/Generate"
	askOne    = "\x00\x00\x00\x00\x08\x0a\x06orders"
	askUUIDs  = "\x00\x00\x00\x00\x08\x0a\x03uid\x10\xe8\x07" // 1,000
	askNobody = "\x00\x00\x00\x00\x06\x0a\x04none"
)

var overHTTP = served{"HTTP/2", func(v *target) string { return v.http }, [2]string{"/v1/ids/orders"}, [2]string{"/v1/ids/uid?count=1000"}, [2]string{"/v1/ids/none"}}

var overGRPC = served{"gRPC", func(v *target) string { return v.grpc }, [2]string{generate, askOne}, [2]string{generate, askUUIDs}, [2]string{generate, askNobody}}

// framedAttacks attack a port.
func framedAttacks(p served) []attack {
	hold := func(connections int, begin func(*conn)) func(context.Context, *target) {
		return func(ctx context.Context, v *target) { v.hold(ctx, p.port(v), connections, 50, begin) }
	}
	unread := func(c *conn, request [2]string, times, fields int, settings ...http2.Setting) {
		f := frames(c, settings...)
		for range times {
			f.ask(request[0], request[1], fields)
		}
		_ = f.send()
	}
	noWindow := http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}
	all := []attack{
		{"idle connections of HTTP/2", declared, hold(12_000, func(c *conn) { _ = frames(c).send() })},
		{"HTTP/2 frames of a megabyte", declared, hold(2000, func(c *conn) {
			f := frames(c)
			_ = f.WriteRawFrame(0x77, 0, 0, make([]byte, 1<<20))
			_ = f.send()
		})},
		{"HTTP/2 heads that never end", declared, hold(2000, func(c *conn) {
			f := frames(c)
			stream := f.begin(p.one[0], p.one[1], 0, false)
			for range 1000 {
				_ = f.WriteContinuation(stream, false, []byte("\x40\x01x\x7f\x00"+strings.Repeat("x", 127)))
			}
			_ = f.send()
		})},
		{"HTTP/2 answers that wait for a window", declared, hold(2000, func(c *conn) { unread(c, p.one, 250, 90, noWindow) })},
		{"large HTTP/2 answers that wait for a window", declared, hold(2000, func(c *conn) { unread(c, p.large, 250, 0, noWindow) })},
		{"reflection that waits for a window", declared, hold(2000, func(c *conn) {
			const symbol = "google.protobuf.FileDescriptorProto"
			question := "\x22" + string(rune(len(symbol))) + symbol
			f := frames(c, noWindow)
			for range 250 {
				stream := f.begin("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", question, 0, true)
				for range 8 {
					_ = f.WriteData(stream, false, []byte("\x00\x00\x00\x00"+string(rune(len(question)))+question))
				}
			}
			_ = f.send()
		})},
		{"HTTP/2 errors that are not read", declared, hold(2000, func(c *conn) { unread(c, p.failed, 5000, 0) })},
		{"HTTP/2 requests that are reset", declared, func(ctx context.Context, v *target) {
			v.repeat(ctx, p.port(v), 100, func(c *conn) {
				f := frames(c)
				for ctx.Err() == nil {
					for range 100 {
						_ = f.WriteRSTStream(f.ask(p.large[0], p.large[1], 0), http2.ErrCodeCancel)
					}
					if f.send() != nil {
						return
					}
				}
			})
		}},
		{"HTTP/2 frames of control", declared, func(ctx context.Context, v *target) {
			v.repeat(ctx, p.port(v), 100, func(c *conn) {
				f := frames(c)
				for ctx.Err() == nil {
					for range 100 {
						_ = f.WriteSettings()
						_ = f.WritePing(false, [8]byte{})
						_ = f.WriteWindowUpdate(0, 1)
					}
					if f.send() != nil {
						return
					}
				}
			})
		}},
		{"HTTP/2 PINGs whose answers are not read", declared, hold(2000, func(c *conn) {
			if raw, err := c.Conn.(*net.TCPConn).SyscallConn(); err == nil {
				_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2304) })
			}
			f := frames(c)
			for range 12_000 {
				_ = f.WritePing(false, [8]byte{})
			}
			_ = f.send()
		})},
		{"watches of health", declared, func(ctx context.Context, v *target) { v.watches(ctx, p.port(v)) }},
		{"streams read slowly", declared, func(ctx context.Context, v *target) { v.slowStreams(ctx, p.port(v)) }},
		{"streams without a pause", declared, func(ctx context.Context, v *target) { v.fastStreams(ctx, p.port(v)) }},
		{"calls without a pause", declared, func(ctx context.Context, v *target) {
			v.streams(ctx, 20, 250, func(ctx context.Context, c *http.Client) error {
				ids := firnv1connect.NewIDServiceClient(c, "http://"+p.port(v), connect.WithGRPC())
				n := int32(1000)
				_, err := ids.Generate(ctx, connect.NewRequest(&firnv1.GenerateRequest{Namespace: "orders", Count: &n}))
				return err
			})
		}},
		{"messages that never end", declared, hold(12_000, func(c *conn) {
			f := frames(c)
			for range 250 {
				stream := f.begin(generate, askOne, 0, true)
				for range 4 {
					_ = f.WriteData(stream, false, []byte("\x00\x00\x00\xfd\xe8"+strings.Repeat("x", 15_000)))
				}
			}
			_ = f.send()
		})},
	}
	for i := range all {
		all[i].name += ", " + p.named
	}
	return all
}

var headAttacks = []attack{
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
func (v *target) repeat(ctx context.Context, to string, connections int, use func(*conn)) {
	done := make(chan struct{})
	for range connections {
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				c, err := v.connect(hostileAddress, to)
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
