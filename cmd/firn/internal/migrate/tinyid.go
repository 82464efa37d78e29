package migrate

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// TinyID answers clients of TinyId as its server does: a bizType is a namespace, and the token identifies the caller. Make
// one with [NewTinyID].
type TinyID struct {
	spring
	requests map[string]tinyidRequest // by the end of the path
	answers  sync.Pool                // of *answer
}

// A tinyidRequest is one of TinyId's four.
type tinyidRequest struct {
	ids    bool // it asks for single ids, else for a range
	simple bool // the answer is plain text, empty for failures; else JSON
}

// An answer is reusable memory for an answer.
type answer struct {
	batch issuing.Batch
	body  []byte
}

// maxKept bounds the memory that is kept for later answers.
const maxKept = 1 << 20

// NewTinyID returns the interface to a service.
func NewTinyID(s *issuing.Service, log *slog.Logger) *TinyID {
	return &TinyID{spring: spring{s.Front(issuing.TinyID), log}, requests: map[string]tinyidRequest{
		"/id/nextId": {ids: true}, "/id/nextIdSimple": {ids: true, simple: true},
		"/id/nextSegmentId": {}, "/id/nextSegmentIdSimple": {simple: true},
	}}
}

// Register adds the interface's requests to a mux, at TinyId's default path, which its client
// always requests. Other paths below it do not exist there.
func (t *TinyID) Register(mux *http.ServeMux) {
	h := t.Prefixed(http.HandlerFunc(t.notFound))
	mux.Handle("/tinyid", h)
	mux.Handle("/tinyid/", h)
	for path := range t.requests {
		mux.Handle("/tinyid"+path, h)
		mux.Handle("/tinyid"+path+"/{$}", h)
	}
}

// Prefixed answers the interface's requests behind any prefix of the path, as
// /gateway/tinyid/id/nextId; next answers all others. A client may reach the server through a
// gateway with a path, and the original server may have any context path.
func (t *TinyID) Prefixed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked, ok := t.at(r.URL.Path); ok {
			t.serve(w, r, asked)
			return
		}
		if strings.Contains(r.URL.Path, "/tinyid/id/") {
			t.notFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// at returns the request of a path.
func (t *TinyID) at(path string) (asked tinyidRequest, ok bool) {
	asked, ok = t.requests[lastTwo(strings.TrimSuffix(path, "/"))]
	return asked, ok
}

// lastTwo returns the last two parts of a path, such as /id/nextId.
func lastTwo(path string) string {
	last := max(strings.LastIndexByte(path, '/'), 0)
	return path[max(strings.LastIndexByte(path[:last], '/'), 0):]
}

// serve answers a request. The status is always 200, except for requests that would not
// reach TinyId's own code.
func (t *TinyID) serve(w http.ResponseWriter, r *http.Request, asked tinyidRequest) {
	start := time.Now()
	defer func() { t.front.Observe(time.Since(start)) }()
	contentType, ok := t.accepts(w, r, asked.simple)
	if !ok {
		return
	}
	p, err := t.parse(r, asked)
	if err != nil {
		f := t.front.Refuse(err)
		exception := ""
		if f.Code == "bad_count" {
			exception = "org.springframework.web.method.annotation.MethodArgumentTypeMismatchException"
		}
		springRefuse(w, r, f, exception)
		return
	}
	made, ok := t.answers.Get().(*answer)
	if !ok {
		made = new(answer)
	}
	defer t.recycle(made)
	if made.body, err = t.issue(r, asked, p, made); err != nil {
		f := failure.Of(err)
		t.log.Debug("request failed", "method", r.Method, "path", r.URL.Path, "code", f.Code, "error", err)
		springNote(w, f)
		made.body = appendFailure(made.body[:0], asked, p.bizType, f)
	}
	springWrite(w, http.StatusOK, contentType, made.body)
}

// recycle keeps the memory of an answer for a later one, unless it is large.
func (t *TinyID) recycle(made *answer) {
	made.batch.Release()
	if cap(made.body) <= maxKept {
		t.answers.Put(made)
	}
}

// caller returns the caller with the token; without a token, the caller as for Firn's own API.
func (t *TinyID) caller(r *http.Request, token string) (*access.Caller, error) {
	if token == "" {
		return t.front.Caller(r)
	}
	c, _ := access.OfRequest(r) // TinyId's token identifies the caller, not the header
	c.Token = token
	return t.front.Identify(c)
}

// issue returns the body of an answer, in the memory of made.
func (t *TinyID) issue(r *http.Request, asked tinyidRequest, p parameters, made *answer) ([]byte, error) {
	b := made.body[:0]
	if p.bizType == "" {
		return b, t.front.Refuse(failure.New(http.StatusForbidden, "forbidden", "bizType is missing or empty"))
	}
	caller, err := t.caller(r, p.token)
	if err != nil {
		return b, err
	}
	ask := issuing.Ask{Namespace: p.bizType, Count: p.count, Fits: numeric}
	switch {
	case !asked.ids:
		taken, err := t.front.Range(r.Context(), caller, p.bizType)
		if err != nil {
			return b, err
		}
		return newSegment(taken).append(b, asked.simple), nil
	case p.count <= 0: // no id is requested
		made.batch.IDs = made.batch.IDs[:0]
		if _, err := t.front.Find(caller, ask); err != nil {
			return b, err
		}
		t.front.Answered(http.StatusOK)
	default:
		if _, err := t.front.Issue(r.Context(), caller, ask, &made.batch); err != nil {
			return b, err
		}
	}
	return appendIDs(b, made.batch.IDs, asked.simple), nil
}

// numeric refuses a namespace whose ids are not numbers.
func numeric(ns *issuing.Namespace) error {
	if is := ns.Lacks(settings.Single); is != "" {
		return failure.BadRequest("bad_format", "the ids of namespace %s, %s, are not numbers", ns.Name(), is)
	}
	return nil
}
