package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A request is a valid one that is changed at random: in a value, a field, its body, a frame or a line, or a byte.
type request struct {
	line   string // of HTTP; of the Redis protocol all
	fields []string
	body   string
}

// envelope is a message of gRPC with its length in front.
func envelope(message string) string {
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))) + message
}

var (
	asJSON    = []string{"Content-Type: application/json"}
	asProto   = []string{"Content-Type: application/proto"}
	asWeb     = []string{"Content-Type: application/grpc-web+proto"}
	asGRPC    = []string{"Content-Type: application/grpc", "TE: trailers", "grpc-timeout: 5S"}
	asForm    = []string{"Content-Type: application/x-www-form-urlencoded"}
	asConnect = []string{"Content-Type: application/connect+json", "Connect-Protocol-Version: 1"}
)

const (
	single  = "POST " + generate
	stream  = "POST /firn.v1.IDService/GenerateStream"
	decode  = "POST /firn.v1.IDService/Decode"
	check   = "POST /grpc.health.v1.Health/Check"
	reflect = "POST /grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	orders  = "\x0a\x06orders\x10\x03" // namespace orders, 3 ids
	anID    = "\x0a\x12249658828382081066\x1a\x06orders"
)

var overFrames = []request{
	{single, asGRPC, envelope(orders)}, {decode, asGRPC, envelope(anID)}, {check, asGRPC, envelope("")}, {stream, asGRPC, envelope(orders)}, {reflect, asGRPC, envelope("\x3a\x01*")},
}

// isFramed reports whether the requests of a protocol are frames of HTTP/2.
func isFramed(protocol string) bool { return protocol == "grpc" || protocol == "grpc-http" }

// seeds are valid requests, by protocol.
var seeds = map[string][]request{
	"http": {
		{line: "GET /v1/ids/orders?count=3&format=base62"}, {line: "POST /v1/ids/users", fields: asForm, body: "count=3"}, {line: "POST /v1/ids/uid"},
		{line: "GET /v1/decode/249658828382081066?namespace=orders"}, {line: "GET /v1/decode/249658828382081066?layout=41/5/5/12&unit=1ms&epoch=2020-01-01"},
		{line: "GET /readyz?namespace=orders", fields: []string{"Accept: text/html"}}, {line: "GET /v1/namespaces/users"}, {line: "GET /v1/namespaces"},
		{line: "GET /v1/ids/orders?numbers=true", fields: []string{"Firn-Timeout-Ms: 500", "Accept: text/plain"}},
	},
	"connect": {
		{single, asJSON, `{"namespace":"orders","count":3}`}, {single, asProto, orders}, {decode, asJSON, `{"id":"249658828382081066","layout":"41/5/5/12","unit":"1ms"}`},
		{line: "GET /firn.v1.IDService/Decode?connect=v1&encoding=json&message=%7B%22id%22%3A%22249658828382081066%22%7D"},
		{"POST /firn.v1.IDService/ListNamespaces", asJSON, "{}"}, {check, asJSON, `{"service":"firn.v1.IDService"}`},
		{stream, asConnect, envelope(`{"namespace":"uid","batch":10}`)},
	},
	"grpc":      overFrames, // on its own port
	"grpc-http": overFrames,
	"grpc-web":  {{single, asWeb, envelope(orders)}, {decode, asWeb, envelope(anID)}, {check, asWeb, envelope("")}, {stream, asWeb, envelope(orders)}},
	"leaf": {
		{line: "GET /api/segment/get/users"}, {line: "GET /api/snowflake/get/orders"}, {line: "GET /decodeSnowflakeId?snowflakeId=249658828382081066"}, {line: "GET /cache"}, {line: "GET /db"},
	},
	"tinyid": {
		{line: "GET /tinyid/id/nextId?bizType=users&batchSize=2&token=t"}, {line: "GET /tinyid/id/nextIdSimple?bizType=users&batchSize=2&token=t"},
		{"POST /tinyid/id/nextSegmentId", asForm, "bizType=users&token=t"}, {"POST /tinyid/id/nextSegmentIdSimple", asForm, "bizType=users&token=t"},
	},
	"cosid": {
		{line: "POST /segments/distributor/shop/a?offset=0&step=10"}, {line: "PATCH /segments/shop/a?step=5"}, {line: "GET /ids/orders"}, {line: "GET /ids/as-string/orders"}, {line: "GET /ids"},
		{line: "POST /machines/shop?instanceId=i&stable=true&machineBit=10&safeGuardDuration=PT5M"}, {line: "DELETE /machines/shop?instanceId=i&stable=false"},
		{line: "PATCH /machines/shop?instanceId=i&stable=true&safeGuardDuration=PT5M"},
	},
	"resp": {
		{line: "*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n"}, {line: "*3\r\n$6\r\nINCRBY\r\n$5\r\nusers\r\n$1\r\n5\r\n"}, {line: "FIRN.NEXT uid COUNT 3\r\n"}, {line: "FIRN.DECODE orders 5 FORMAT decimal\r\n"},
		{line: "HELLO 3 SETNAME x\r\nGET orders\r\n"}, {line: "CLIENT SETINFO lib-name x\r\nCLIENT LIST\r\n"}, {line: "MULTI\r\nINCR orders\r\nINCRBY users 5\r\nEXEC\r\n"}, {line: "COMMAND DOCS incr\r\n"},
		{line: "CONFIG GET *\r\nINFO all\r\n"}, {line: "*4\r\n$4\r\nEVAL\r\n$33\r\nreturn redis.call('INCR', KEYS[1])\r\n$1\r\n1\r\n$6\r\norders\r\n"},
	},
}

var (
	odd = []string{
		"", "%zz", ";", "%00", "-1", "0", "1", "65536", "100000", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e5", "true", "PT-5M", "PT9223372036854775807S",
		"\r\n", "*", "$-1\r\n", "..", "\xff\xfe", "[", "{", "null", "\u0663", "é", "a,b", "1.5", "orders", "users", "uid", "POST", "GET", "DELETE", "HEAD",
	}
	value = regexp.MustCompile(`[^=&/ ?":,{}\r\n]+`)
)

// mutated returns a request as bytes, for which a number of changes are drawn. Some requests stay valid.
func (q request) mutated(r *rand.Rand, protocol string) string {
	q.fields = slices.Clone(q.fields)
	for range r.IntN(3) {
		switch r.IntN(5) {
		case 0, 1:
			q.line = newValue(r, q.line)
		case 2:
			q.body = newValue(r, q.body)
		case 3:
			q.body = newBytes(r, q.body)
		default:
			q.fields = newPieces(r, append(q.fields, "X-Forwarded-For: 10.0.0.1", "Content-Encoding: gzip", "Authorization: Bearer x", "Expect: 100-continue"))
		}
	}
	if strings.HasPrefix(protocol, "grpc") && r.IntN(2) == 0 && len(q.body) > 5 {
		q.body = envelope(q.body[5:]) // so that the message is looked at
	}
	var pieces []string
	switch {
	case protocol == "resp":
		pieces = strings.SplitAfter(q.line, "\r\n")
	case isFramed(protocol):
		pieces = q.frames()
	default:
		pieces = append([]string{q.line + " HTTP/1.1\r\n", "Host: x\r\n"}, q.fields...)
		for i := range pieces[2:] {
			pieces[2+i] += "\r\n"
		}
		pieces = append(pieces, fmt.Sprintf("Content-Length: %d\r\n", len(q.body)), "\r\n", q.body)
	}
	if r.IntN(3) == 0 {
		pieces = newPieces(r, pieces)
	}
	text := strings.Join(pieces, "")
	for r.IntN(3) == 0 {
		text = newBytes(r, text)
	}
	return text
}

// frames returns the preface and the frames of a request over HTTP/2.
func (q request) frames() (pieces []string) {
	var out, head bytes.Buffer
	f, pack := http2.NewFramer(&out, nil), hpack.NewEncoder(&head)
	next := func(error) { pieces = append(pieces, out.String()); out.Reset() }
	out.WriteString(http2.ClientPreface)
	next(nil)
	next(f.WriteSettings())
	method, path, _ := strings.Cut(q.line, " ")
	fields := []hpack.HeaderField{{Name: ":method", Value: method}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "x"}, {Name: ":path", Value: path}}
	for _, text := range q.fields {
		name, value, _ := strings.Cut(text, ": ")
		fields = append(fields, hpack.HeaderField{Name: strings.ToLower(name), Value: value})
	}
	for _, field := range fields {
		_ = pack.WriteField(field)
	}
	next(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndHeaders: true}))
	next(f.WriteData(1, true, []byte(q.body)))
	return pieces
}

// newValue changes one value of a path, a query, a form, JSON or a command.
func newValue(r *rand.Rand, text string) string {
	all := value.FindAllStringIndex(text, -1)
	if len(all) == 0 {
		return text
	}
	at := all[r.IntN(len(all))]
	return text[:at[0]] + odd[r.IntN(len(odd))] + text[at[1]:]
}

// newPieces drops, repeats or swaps some of the fields, lines or frames.
func newPieces(r *rand.Rand, all []string) []string {
	at, to := r.IntN(len(all)), r.IntN(len(all))
	switch r.IntN(4) {
	case 0:
		return slices.Delete(all, at, at+1)
	case 1:
		return slices.Insert(all, at, all[to])
	case 2:
		all[at], all[to] = all[to], all[at]
	default:
		all[at] = newBytes(r, all[at])
	}
	return all
}

// newBytes changes, drops, repeats, swaps or adds some bytes.
func newBytes(r *rand.Rand, text string) string {
	b := []byte(text)
	if len(b) == 0 {
		b = []byte("x")
	}
	at := r.IntN(len(b))
	switch r.IntN(5) {
	case 0:
		b[at] = byte(r.IntN(256))
	case 1:
		b = slices.Delete(b, at, min(len(b), at+1+r.IntN(8)))
	case 2:
		b = slices.Insert(b, at, bytes.Repeat([]byte{b[at]}, r.IntN(300))...)
	case 3:
		to := r.IntN(len(b))
		b[at], b[to] = b[to], b[at]
	default:
		b = slices.Insert(b, at, []byte(odd[r.IntN(len(odd))])...)
	}
	return string(b)
}
