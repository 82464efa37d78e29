package migrate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// Answers in the form of Spring Boot 1.5, which the servers of Leaf and TinyId use: their clients may rely on its
// content types and its form of errors.
const (
	springTypeJSON = "application/json;charset=UTF-8"
	springTypeText = "text/plain;charset=UTF-8"
)

// springCodeHeader is the header with Firn's own code of a failure: the answers of other systems
// have no field for it.
const springCodeHeader = "Firn-Error"

// A spring answers requests of one protocol as a server of Spring Boot does.
type spring struct {
	front *issuing.Front
	log   *slog.Logger
}

// notFound answers a request for a path that does not exist.
func (s spring) notFound(w http.ResponseWriter, r *http.Request) {
	s.front.Answered(http.StatusNotFound)
	springFail(w, r, http.StatusNotFound, "", "No message available")
}

// accepts returns the content type of the answer to a request, a text or else JSON. It answers itself if the method is not
// allowed, or the client does not accept the form of the answer.
func (s spring) accepts(w http.ResponseWriter, r *http.Request, text bool) (contentType string, ok bool) {
	switch {
	case !springAccepts(w, r):
		s.front.Answered(http.StatusMethodNotAllowed)
		return "", false
	case text:
		contentType = springTypeOfText(r)
	case springTakesJSON(r):
		contentType = springTypeJSON
	}
	if contentType == "" {
		s.front.Answered(http.StatusNotAcceptable)
		springFail(w, r, http.StatusNotAcceptable, "org.springframework.web.HttpMediaTypeNotAcceptableException",
			"Could not find acceptable representation")
	}
	return contentType, contentType != ""
}

// springAccepts reports whether the method of a request is allowed, and answers it if not. A
// Spring handler without declared methods allows all except TRACE and CONNECT, and answers OPTIONS itself.
func springAccepts(w http.ResponseWriter, r *http.Request) bool {
	status := http.StatusMethodNotAllowed
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	case http.MethodOptions:
		status = http.StatusOK
	}
	w.Header()["Allow"] = []string{"GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS"}
	w.Header()["Content-Length"] = []string{"0"}
	w.WriteHeader(status)
	return false
}

// springTypeOfText returns the content type of a text for a request: what the client likes best, whatever it is, as
// Spring does. A client that parses a number as JSON refuses another type. It is "" if the Accept header is invalid.
func springTypeOfText(r *http.Request) string {
	kinds, ok := accepted(r)
	if !ok {
		return ""
	}
	best := slices.IndexFunc(kinds, func(kind string) bool { return !strings.Contains(kind, "*") })
	switch {
	case best >= 0:
		return kinds[best] + ";charset=UTF-8"
	case len(kinds) > 0 && strings.HasPrefix(kinds[0], "application/"):
		return springTypeJSON
	}
	return springTypeText
}

// springTakesJSON reports whether the client of a request accepts JSON.
func springTakesJSON(r *http.Request) bool {
	kinds, ok := accepted(r)
	return ok && (len(kinds) == 0 || slices.ContainsFunc(kinds, func(kind string) bool {
		return kind == "application/json" || kind == "application/*" || kind == "*/*" ||
			strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
	}))
}

// accepted returns the media types of the Accept header, the one with the highest quality first. It is empty without a
// header, which means that the client accepts all. Ok is false for an invalid header.
func accepted(r *http.Request) (kinds []string, ok bool) {
	header := strings.Join(r.Header["Accept"], ",")
	if header == "*/*" || strings.Trim(header, " ,") == "" {
		return nil, true
	}
	var qualities map[string]float64 // how far below 1 they are
	for part := range strings.SplitSeq(header, ",") {
		kind, with, _ := strings.Cut(part, ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
		if kind == "*" { // Java's own client sends it
			kind = "*/*"
		}
		if !isMediaType(kind) {
			return nil, false
		}
		kinds = append(kinds, kind)
		for parameter := range strings.SplitSeq(with, ";") {
			text, isQuality := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
			if !isQuality {
				continue
			}
			q, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, false
			}
			if qualities == nil {
				qualities = map[string]float64{}
			}
			qualities[kind] = 1 - q
		}
	}
	if qualities != nil {
		slices.SortStableFunc(kinds, func(a, b string) int { return cmp.Compare(qualities[a], qualities[b]) })
	}
	return kinds, true
}

// isMediaType reports whether a text in lower case is a type and a subtype, as RFC 9110 writes them.
func isMediaType(text string) bool {
	kind, subtype, _ := strings.Cut(text, "/")
	return kind != "" && subtype != "" && strings.Trim(kind+subtype, "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

// springWrite answers with a body.
func springWrite(w http.ResponseWriter, status int, contentType string, body []byte) {
	header := w.Header()
	header["Content-Type"] = []string{contentType}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	// A failed write means that the client has gone; its ids are a gap.
	_, _ = w.Write(body)
}

// springNote says in an answer's headers what went wrong, in Firn's words.
func springNote(w http.ResponseWriter, f *failure.Failure) {
	w.Header()[springCodeHeader] = []string{f.Code}
	if f.Retry > 0 {
		w.Header()["Retry-After"] = []string{failure.RetryAfter(f.Retry)}
	}
}

// springRefuse answers a failure with its own status and message.
func springRefuse(w http.ResponseWriter, r *http.Request, f *failure.Failure, exception string) {
	springNote(w, f)
	springFail(w, r, f.Status, exception, f.Message)
}

// springFail answers a failed request; exception is the name of a Java class, and may be empty. A client that accepts
// neither JSON nor HTML gets 406 without a body.
func springFail(w http.ResponseWriter, r *http.Request, status int, exception, message string) {
	if !springTakesJSON(r) && !takesHTML(r) {
		w.Header()["Content-Length"] = []string{"0"}
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	if status == http.StatusUnauthorized {
		w.Header()["Www-Authenticate"] = []string{"Bearer"}
	}
	// The fields in their order.
	springWrite(w, status, springTypeJSON, springEncode(struct {
		Timestamp int64  `json:"timestamp"` // Unix milliseconds
		Status    int    `json:"status"`
		Error     string `json:"error"`
		Exception string `json:"exception,omitempty"`
		Message   string `json:"message"`
		Path      string `json:"path"`
	}{time.Now().UnixMilli(), status, http.StatusText(status), exception, message, r.URL.Path}))
}

func takesHTML(r *http.Request) bool {
	kinds, ok := accepted(r)
	return ok && slices.Contains(kinds, "text/html")
}

// springEncode returns v, made of numbers and texts alone, as Jackson writes it: without escapes
// for HTML.
func springEncode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // numbers and texts can always be written
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
