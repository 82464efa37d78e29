package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxMessage bounds how much is read of an answer without ids.
	maxMessage = 64 << 10
	// maxShown bounds how much of it an error repeats.
	maxShown = 200
	// maxKept bounds the buffers that are reused for other answers.
	maxKept = 4 << 20
)

// An exchange is one request and how to read its answer.
type exchange struct {
	method string
	path   string
	accept string // the only media type accepted; "" for any
	token  bool   // send the token
	most   int    // bytes of the answer
	read   func(body []byte) error
}

var bodies = sync.Pool{New: func() any { return new([]byte) }}

// exchange makes a request to a server. Its error is an *[Error], or the cause of
// ctx if that ended and the server is not to blame.
func (c *Client) exchange(ctx context.Context, one *server, x exchange) error {
	req, err := http.NewRequestWithContext(ctx, x.method, one.address+x.path, nil)
	if err != nil {
		return &Error{Server: one.address, Err: err}
	}
	req.Header.Set("User-Agent", "firn-client")
	req.Header.Set("Cache-Control", "no-store")
	req.Header.Set("Accept-Encoding", "identity") // ids hardly shrink, and what unpacks has no length
	if x.accept != "" {
		req.Header.Set("Accept", x.accept)
	}
	if x.token && c.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return &Error{Server: one.address, Err: transport(ctx, err)}
	}
	kept, ok := bodies.Get().(*[]byte)
	if !ok {
		kept = new([]byte)
	}
	most := x.most
	if answer.StatusCode != http.StatusOK {
		most = maxMessage
	}
	body, err := readAll((*kept)[:0], answer.Body, most)
	defer func() {
		if cap(body) <= maxKept {
			*kept = body[:0]
			bodies.Put(kept)
		}
	}()
	closed := answer.Body.Close()
	switch {
	case answer.StatusCode != http.StatusOK:
		return refusal(one, answer, body)
	case err == nil:
		err = closed
	}
	if err != nil {
		return &Error{Server: one.address, Status: answer.StatusCode, Err: transport(ctx, err)}
	}
	if age := answer.Header.Get("Age"); age != "" && age != "0" {
		return &Error{Server: one.address, Status: answer.StatusCode,
			Err: fmt.Errorf("%w: it is %s seconds old, from a cache, and others may have had it", ErrAnswer, shown(age))}
	}
	if x.accept != "" {
		kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
		if err != nil || kind != x.accept {
			return &Error{Server: one.address, Status: answer.StatusCode,
				Err: fmt.Errorf("%w: it is %q, not %s: %s", ErrAnswer, shown(answer.Header.Get("Content-Type")), x.accept, shown(string(body)))}
		}
	}
	if x.read != nil {
		if err := x.read(body); err != nil {
			return &Error{Server: one.address, Status: answer.StatusCode, Err: err}
		}
	}
	return nil
}

// transport strips the request from an error, since the server's address is reported
// already, and replaces the end of a context by its cause.
func transport(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		// Time-outs of packages net and http match context.DeadlineExceeded. A caller
		// would take that for the end of its own context, which has not ended.
		return errors.New(err.Error())
	}
	return err
}

// readAll appends the content of r to buf, up to most bytes.
func readAll(buf []byte, r io.Reader, most int) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > most:
			return buf[:most], fmt.Errorf("%w: it is longer than the %d bytes that it may be", ErrAnswer, most)
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}

// refusal reads an answer that is an error.
func refusal(one *server, answer *http.Response, body []byte) *Error {
	e := &Error{Server: one.address, Status: answer.StatusCode}
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		e.Err = fmt.Errorf("%w: a redirect to %q is not followed; give the address of the server itself",
			ErrAnswer, shown(answer.Header.Get("Location")))
		return e
	}
	e.RetryAfter = parseRetryAfter(answer.Header)
	var parsed struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &parsed); err != nil || parsed.Error.Code == "" {
		e.Message = shown(string(body)) // of a proxy, or of what is no Firn server
		return e
	}
	e.Code, e.Message = shown(parsed.Error.Code), shown(parsed.Error.Message)
	return e
}

// parseRetryAfter reads seconds, or a date against the date of the answer itself.
func parseRetryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	}
	until, err1 := http.ParseTime(text)
	now, err2 := http.ParseTime(h.Get("Date"))
	if err1 != nil || err2 != nil {
		return 0
	}
	return min(max(until.Sub(now), 0), maxRetryAfter)
}

// shown shortens foreign text and removes what would spoil a log.
func shown(text string) string {
	text = strings.TrimSpace(text)
	cut := ""
	if len(text) > maxShown {
		text, cut = text[:maxShown], "…"
	}
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return ' '
		}
		return r
	}, []byte(text))) + cut
}
