// Package tinyidapi answers clients of TinyId, Didi's issuing service, as its server does: a
// bizType is a namespace, and the token identifies the caller.
package tinyidapi

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// API is the interface. Make one with [New].
type API struct {
	front    *issuing.Front
	log      *slog.Logger
	requests map[string]request // by the end of the path
	answers  sync.Pool          // of *answer
}

// A request is one of TinyId's four.
type request struct {
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

// New returns the interface to a service.
func New(s *issuing.Service, log *slog.Logger) *API {
	return &API{front: s.Front(issuing.TinyID), log: log, requests: map[string]request{
		"/id/nextId": {ids: true}, "/id/nextIdSimple": {ids: true, simple: true},
		"/id/nextSegmentId": {}, "/id/nextSegmentIdSimple": {simple: true},
	}}
}

// Register adds the interface's requests to a mux, at TinyId's default path, which its client
// always requests. Other paths below it do not exist there.
func (a *API) Register(mux *http.ServeMux) {
	h := a.Prefixed(http.HandlerFunc(a.notFound))
	mux.Handle("/tinyid", h)
	mux.Handle("/tinyid/", h)
	for path := range a.requests {
		mux.Handle("/tinyid"+path, h)
		mux.Handle("/tinyid"+path+"/{$}", h)
	}
}

func (a *API) notFound(w http.ResponseWriter, r *http.Request) {
	a.front.Answered(http.StatusNotFound)
	httpapi.SpringNotFound(w, r)
}

// Prefixed answers the interface's requests behind any prefix of the path, as
// /gateway/tinyid/id/nextId; next answers all others. A client may reach the server through a
// gateway with a path, and the original server may have any context path.
func (a *API) Prefixed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked, ok := a.at(r.URL.Path); ok {
			a.serve(w, r, asked)
			return
		}
		if strings.Contains(r.URL.Path, "/tinyid/id/") {
			a.notFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// at returns the request of a path.
func (a *API) at(path string) (asked request, ok bool) {
	asked, ok = a.requests[lastTwo(strings.TrimSuffix(path, "/"))]
	return asked, ok
}

// lastTwo returns the last two parts of a path, such as /id/nextId, or "" if there are fewer.
func lastTwo(path string) string {
	last := strings.LastIndexByte(path, '/')
	if last < 0 {
		return ""
	}
	if before := strings.LastIndexByte(path[:last], '/'); before >= 0 {
		return path[before:]
	}
	return ""
}

// serve answers a request. The status is always 200, except for requests that would not
// reach TinyId's own code.
func (a *API) serve(w http.ResponseWriter, r *http.Request, asked request) {
	start := time.Now()
	defer func() { a.front.Observe(time.Since(start)) }()
	if !httpapi.SpringAccepts(w, r) {
		a.front.Answered(http.StatusMethodNotAllowed)
		return
	}
	contentType := httpapi.SpringTypeJSON
	if asked.simple {
		contentType = httpapi.SpringTypeOfText(r)
	}
	if contentType == "" || !asked.simple && !httpapi.SpringTakesJSON(r) {
		a.front.Answered(http.StatusNotAcceptable)
		httpapi.SpringNotAcceptable(w, r)
		return
	}
	p, err := a.parse(r, asked)
	if err != nil {
		f := a.front.Refuse(err)
		httpapi.SpringNote(w, f)
		exception := ""
		if f.Code == "bad_count" {
			exception = "org.springframework.web.method.annotation.MethodArgumentTypeMismatchException"
		}
		httpapi.SpringFail(w, r, f.Status, exception, f.Message)
		return
	}
	made, ok := a.answers.Get().(*answer)
	if !ok {
		made = new(answer)
	}
	defer a.recycle(made)
	if made.body, err = a.issue(r, asked, p, made); err != nil {
		f := failure.Of(err)
		a.log.Debug("request failed", "method", r.Method, "path", r.URL.Path, "code", f.Code, "error", err)
		httpapi.SpringNote(w, f)
		made.body = failed(made.body[:0], asked, p.bizType, f)
	}
	httpapi.SpringAnswer(w, contentType, made.body)
}

// recycle keeps the memory of an answer for a later one, unless it is large.
func (a *API) recycle(made *answer) {
	made.batch.Release()
	if cap(made.body) <= maxKept {
		a.answers.Put(made)
	}
}

// caller returns the caller with the token; without a token, the caller as for Firn's own API.
func (a *API) caller(r *http.Request, token string) (*access.Caller, error) {
	if token == "" {
		return a.front.Caller(r)
	}
	c, _ := access.OfRequest(r) // TinyId's token identifies the caller, not the header
	c.Token = token
	return a.front.Identify(c)
}

// issue returns the body of an answer, in the memory of made.
func (a *API) issue(r *http.Request, asked request, p parameters, made *answer) ([]byte, error) {
	b := made.body[:0]
	if p.bizType == "" {
		return b, a.front.Refuse(failure.New(http.StatusForbidden, "forbidden", "bizType is missing or empty"))
	}
	caller, err := a.caller(r, p.token)
	if err != nil {
		return b, err
	}
	ask := issuing.Ask{Namespace: p.bizType, Count: p.count, Fits: numeric}
	switch {
	case !asked.ids:
		taken, err := a.front.Range(r.Context(), caller, p.bizType)
		if err != nil {
			return b, err
		}
		return newSegment(taken).append(b, asked.simple), nil
	case p.count <= 0: // no id is requested
		made.batch.IDs = made.batch.IDs[:0]
		if _, err := a.front.Find(caller, ask); err != nil {
			return b, err
		}
		a.front.Answered(http.StatusOK)
	default:
		if _, err := a.front.Issue(r.Context(), caller, ask, &made.batch); err != nil {
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
