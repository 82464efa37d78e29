package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

const (
	// idleConnections are kept to each server, for callers of Fetch.
	idleConnections = 64
	// maxMessage bounds how much is read of an answer without ids.
	maxMessage = 64 << 10
	// maxKept bounds the buffers that are reused for other answers.
	maxKept = 4 << 20
	// maxRetryAfter bounds the wait that a server may ask for.
	maxRetryAfter = time.Minute
)

// A wire makes requests to servers.
type wire struct {
	cfg  *Config
	http http.Client
}

func newWire(cfg *Config) *wire {
	w := &wire{cfg: cfg}
	if cfg.HTTP != nil {
		w.http = *cfg.HTTP
	} else {
		w.http.Transport = &http.Transport{
			DialContext:           (&net.Dialer{Timeout: cfg.Timeout, KeepAlive: 15 * time.Second}).DialContext,
			TLSClientConfig:       cfg.TLS.Clone(),
			ForceAttemptHTTP2:     true,
			TLSHandshakeTimeout:   cfg.Timeout,
			ResponseHeaderTimeout: cfg.Timeout,
			MaxIdleConns:          maxServers * idleConnections,
			MaxIdleConnsPerHost:   idleConnections,
			IdleConnTimeout:       90 * time.Second,
		}
	}
	// Only the servers may see the token: do not follow redirects.
	w.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return w
}

func (w *wire) close() {
	if w.cfg.HTTP == nil { // the connections are the client's own
		w.http.CloseIdleConnections()
	}
}

// An exchange is one request and how to read its answer.
type exchange struct {
	namespace string // "" for a probe, which goes without a token and is not reported to the hooks
	count     int    // ids asked for, as the hooks report it
	method    string
	path      string
	once      string // what onceHeader of the answer must repeat; "" for nothing
	accept    string // the only media type accepted; "" for any
	most      int    // bytes of the answer
	read      func(body []byte) error
}

var bodies sync.Pool // of *bytes.Buffer

// timeoutHeader has how long a server may take for ids, in milliseconds.
const timeoutHeader = "Firn-Timeout-Ms"

// onceHeader repeats the parameter once of the request.
const onceHeader = "Firn-Once"

// exchange makes a request to a server. Its error is an *[Error].
func (w *wire) exchange(ctx context.Context, address string, x exchange) (err error) {
	if x.namespace != "" && w.cfg.Hooks.Request != nil {
		began := w.cfg.Time.Monotonic()
		defer func() {
			w.cfg.Hooks.Request(Request{
				Server: address, Namespace: x.namespace, Count: x.count, Took: w.cfg.Time.Monotonic() - began, Err: err,
			})
		}()
	}
	req, err := http.NewRequestWithContext(ctx, x.method, address+x.path, nil)
	if err != nil {
		return &Error{Server: address, Err: err}
	}
	req.Header.Set("User-Agent", "firn-client")
	req.Header.Set("Cache-Control", "no-store")
	req.Header.Set("Accept-Encoding", "identity") // ids hardly shrink, and a compressed answer hides its length
	if deadline, ok := ctx.Deadline(); ok && x.count > 0 {
		// The server fails the request before the client gives up. So the client does not leave a server whose store hangs,
		// only one that hangs itself.
		req.Header.Set(timeoutHeader, strconv.FormatInt(max(time.Until(deadline).Milliseconds()*3/4, 1), 10))
	}
	if x.accept != "" {
		req.Header.Set("Accept", x.accept)
	}
	if x.namespace != "" && w.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+w.cfg.Token)
	}
	answer, err := w.http.Do(req)
	if err != nil {
		return &Error{Server: address, Err: transportError(ctx, err)}
	}
	if once := answer.Header.Get(onceHeader); once != x.once && (once != "" || answer.StatusCode == http.StatusOK) {
		err := fmt.Errorf("%w: it is that of another request (%s: %s): a proxy or a cache mixes answers up", errAnswer, onceHeader, shown(once))
		if once == "" {
			err = fmt.Errorf("%w: it has no header %s: it is not Firn's, or a proxy removes the header", errAnswer, onceHeader)
		}
		// The connection may carry more answers to other requests, so it is closed with the rest of the body unread.
		return &Error{Server: address, Status: answer.StatusCode, Err: errors.Join(err, answer.Body.Close())}
	}
	buf, ok := bodies.Get().(*bytes.Buffer)
	if !ok {
		buf = new(bytes.Buffer)
	}
	defer func() {
		if buf.Cap() <= maxKept {
			buf.Reset()
			bodies.Put(buf)
		}
	}()
	most := x.most
	if answer.StatusCode != http.StatusOK {
		most = maxMessage
	}
	_, err = buf.ReadFrom(io.LimitReader(answer.Body, int64(most)+1))
	if buf.Len() > most {
		buf.Truncate(most)
		err = fmt.Errorf("%w: it is longer than %d bytes", errAnswer, most)
	}
	body := buf.Bytes()
	if closed := answer.Body.Close(); err == nil {
		err = closed
	}
	switch {
	case answer.StatusCode != http.StatusOK: // its status says enough if the rest broke off
		return refusal(address, answer, body)
	case err != nil:
		err = transportError(ctx, err)
	default:
		err = x.readAnswer(answer.Header, body)
	}
	if err != nil {
		return &Error{Server: address, Status: answer.StatusCode, Err: err}
	}
	return nil
}

// readAnswer reads an answer with status 200.
func (x exchange) readAnswer(h http.Header, body []byte) error {
	if age := h.Get("Age"); age != "" && age != "0" {
		return fmt.Errorf("%w: it is %s seconds old, from a cache, and others may have received it", errAnswer, shown(age))
	}
	if x.accept != "" {
		kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
		if err != nil || kind != x.accept {
			return fmt.Errorf("%w: it is %q, not %s: %s", errAnswer, shown(h.Get("Content-Type")), x.accept, shown(string(body)))
		}
	}
	if x.read != nil {
		return x.read(body)
	}
	return nil
}

// transportError strips the request from an error, since the server's address is reported already, and
// replaces the end of a context by its cause.
func transportError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		// A caller would take a time-out of package net or http for the end of its own context.
		return errors.New(err.Error())
	}
	return err
}

// refusal reads an answer that is an error.
func refusal(address string, answer *http.Response, body []byte) error {
	e := &Error{Server: address, Status: answer.StatusCode}
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		e.Err = fmt.Errorf("%w: redirects are not followed (this one leads to %q); set the address of the server itself in Config.Servers",
			errAnswer, shown(answer.Header.Get("Location")))
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
		e.Message = shown(string(body)) // of a proxy, or of another program
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
