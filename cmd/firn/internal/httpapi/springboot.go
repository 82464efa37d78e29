package httpapi

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// Answers in the form of Spring Boot 1.5, which the servers of Leaf and TinyId use: their clients may rely on its
// content types and its form of errors.
const (
	SpringTypeJSON = "application/json;charset=UTF-8"
	SpringTypeText = "text/plain;charset=UTF-8"
)

// SpringCodeHeader is the header with Firn's own code of a failure: the answers of other systems
// have no field for it.
const SpringCodeHeader = "Firn-Error"

// SpringAccepts reports whether the method of a request is allowed, and answers it if not. A
// Spring handler without declared methods allows all except OPTIONS, TRACE and CONNECT.
func SpringAccepts(w http.ResponseWriter, r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	w.Header()["Allow"] = []string{"GET, HEAD, POST, PUT, PATCH, DELETE"}
	SpringFail(w, r, http.StatusMethodNotAllowed, "org.springframework.web.HttpRequestMethodNotSupportedException",
		r.Method+" is not allowed here")
	return false
}

// SpringTypeOfText returns the content type of a text: JSON for a client that prefers it, since
// a client that parses a number as JSON refuses another type.
func SpringTypeOfText(r *http.Request) string {
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		kind, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "text/plain", "text/*", "*/*":
			return SpringTypeText
		case "application/json":
			return SpringTypeJSON
		}
	}
	return SpringTypeText
}

// SpringAnswer answers with status 200.
func SpringAnswer(w http.ResponseWriter, contentType string, body []byte) {
	springAnswer(w, http.StatusOK, contentType, body)
}

func springAnswer(w http.ResponseWriter, status int, contentType string, body []byte) {
	header := w.Header()
	header["Content-Type"] = []string{contentType}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	// A failed write means that the client has gone; its ids are a gap.
	_, _ = w.Write(body)
}

// SpringNote says in an answer's headers what went wrong, in Firn's words.
func SpringNote(w http.ResponseWriter, f *failure.Failure) {
	w.Header()[SpringCodeHeader] = []string{f.Code}
	if f.Retry > 0 {
		w.Header()["Retry-After"] = []string{strconv.Itoa(int(math.Ceil(f.Retry.Seconds())))}
	}
}

// SpringFail answers a failed request; exception is the name of a Java class, and may be empty.
func SpringFail(w http.ResponseWriter, r *http.Request, status int, exception, message string) {
	if status == http.StatusUnauthorized {
		w.Header()["Www-Authenticate"] = []string{"Bearer"}
	}
	// The fields in their order.
	springAnswer(w, status, SpringTypeJSON, SpringEncode(struct {
		Timestamp int64  `json:"timestamp"` // Unix milliseconds
		Status    int    `json:"status"`
		Error     string `json:"error"`
		Exception string `json:"exception,omitempty"`
		Message   string `json:"message"`
		Path      string `json:"path"`
	}{time.Now().UnixMilli(), status, http.StatusText(status), exception, message, r.URL.Path}))
}

// SpringEncode returns v, made of numbers and texts alone, as Jackson writes it: without escapes
// for HTML.
func SpringEncode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // numbers and texts can always be written
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
