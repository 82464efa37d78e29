package cosid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/cosid/registrar"
	public "github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

// The error codes of CosId's proxy.
const (
	codeOverflow = "M-01" // no machine number is left
	codeNotFound = "M-02" // the instance has no machine number
	codeLost     = "M-03" // another instance has the machine number
	codeOther    = "500"  // bad arguments, with status 400 or 500, and all other errors
)

// A failure is a failed request, as the client sees it.
type failure struct {
	status int
	code   string
	msg    string
	retry  time.Duration // when to try again; 0: no Retry-After is sent
	cause  error         // the error behind msg, for the log; may be nil

	// counted is the status in metrics, if not the one sent: the original answers some bad
	// requests with 500, which would count as failures of the server.
	counted int
	// early: the request reached no operation, and is counted as "other".
	early bool
}

func (f *failure) Error() string { return f.msg }

// unreadable is the failure of a missing or malformed parameter. Its status is 500, as in the
// original.
func unreadable(format string, args ...any) *failure {
	return &failure{status: http.StatusInternalServerError, code: codeOther, msg: fmt.Sprintf(format, args...), counted: http.StatusBadRequest}
}

// refused is the failure of a parameter out of range.
func refused(format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, code: codeOther, msg: fmt.Sprintf(format, args...)}
}

// failureOf returns the failure for the client: CosId's own if it has one, else that of all protocols. A caller that is
// not known, or must wait, gets the status as code too.
func failureOf(err error) *failure {
	own := func(code string) *failure {
		return &failure{status: http.StatusBadRequest, code: code, msg: public.Public(err), cause: err}
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	switch {
	case errors.Is(err, registrar.ErrOverflow):
		return own(codeOverflow)
	case errors.Is(err, registrar.ErrNotFound):
		return own(codeNotFound)
	case errors.Is(err, registrar.ErrLost):
		return own(codeLost)
	case errors.Is(err, segment.ErrExhausted), errors.Is(err, segment.ErrStripe), errors.Is(err, store.ErrTaken):
		return own(codeOther)
	case errors.Is(err, registrar.ErrClock):
		f := own(codeOther)
		f.status, f.retry = http.StatusServiceUnavailable, time.Second
		return f
	}
	of := public.Of(err)
	f := &failure{status: of.Status, code: codeOther, msg: of.Message, retry: of.Retry, cause: of}
	switch f.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusRequestEntityTooLarge:
		f.code = strconv.Itoa(f.status)
	case http.StatusNotFound:
		f.status = http.StatusBadRequest
	}
	return f
}

// write sends the failure in the format of the original.
func (f *failure) write(w http.ResponseWriter) {
	if f.retry > 0 {
		w.Header().Set("Retry-After", public.RetryAfter(f.retry))
	}
	if f.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, f.status, struct {
		Code   string   `json:"code"`
		Msg    string   `json:"msg"`
		Errors []string `json:"errors"`
	}{f.code, f.msg, []string{}})
}

// writeJSON sends a body as Jackson writes it: without a line break and without HTML escapes.
func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // cannot happen with the types used here
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	writeBody(w, status, "application/json", bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a failed write means that the client has gone
}
