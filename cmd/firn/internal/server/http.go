package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/slots"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// index is what the root answers.
const index = `Firn issues unique ids.

POST /v1/ids/{namespace}?count=N     ids (GET too); ?format=base62, ?numbers=true, Accept: text/plain
GET  /v1/decode/{id}                 what is in an id; ?namespace= or ?layout=&unit=&epoch=, ?format=
GET  /v1/namespaces                  settings and state; /v1/namespaces/{namespace} of one
GET  /v1/pools/{pool}/workers        the slots of a pool
GET  /livez /readyz /metrics         health, readiness, Prometheus
`

// Handler returns the HTTP interface.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	route := func(pattern string, methods string, h func(http.ResponseWriter, *http.Request) error) {
		mux.Handle(pattern, s.observe(pattern, methods, h))
	}
	// Asking for ids has an effect, so there is no HEAD for it.
	const read = "GET, HEAD"
	route("/v1/ids/{namespace}", "GET, POST", s.ids)
	route("/v1/decode/{id}", read, s.decode)
	route("/v1/namespaces", read, s.listNamespaces)
	route("/v1/namespaces/{namespace}", read, s.oneNamespace)
	route("/v1/pools/{pool}/workers", read, s.workers)
	route("/livez", read, func(w http.ResponseWriter, _ *http.Request) error { return plain(w, "ok\n") })
	route("/readyz", read, func(w http.ResponseWriter, _ *http.Request) error {
		if err := s.ready(); err != nil {
			return &httpError{http.StatusServiceUnavailable, "not_ready", err.Error()}
		}
		return plain(w, "ok\n")
	})
	route("/metrics", read, func(w http.ResponseWriter, r *http.Request) error {
		s.metrics.handler().ServeHTTP(w, r)
		return nil
	})
	route("/{$}", read, func(w http.ResponseWriter, _ *http.Request) error { return plain(w, index) })
	route("/", "", func(_ http.ResponseWriter, r *http.Request) error {
		return &httpError{http.StatusNotFound, "not_found", fmt.Sprintf("there is nothing at %s; GET / lists what there is", r.URL.Path)}
	})
	return mux
}

// httpError is an error with the status and the code it is answered with.
type httpError struct {
	status  int
	code    string
	message string
}

func (e *httpError) Error() string { return e.message }

func badRequest(code, format string, args ...any) error {
	return &httpError{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

// observe counts and times a route, checks the method and answers its error.
func (s *Server) observe(pattern, methods string, h func(http.ResponseWriter, *http.Request) error) http.Handler {
	seconds := s.metrics.seconds.WithLabelValues(pattern)
	good := s.metrics.requests.WithLabelValues(pattern, "200")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		w.Header().Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		var err error
		if methods != "" && !slices.Contains(strings.Split(methods, ", "), r.Method) {
			w.Header().Set("Allow", methods)
			err = &httpError{http.StatusMethodNotAllowed, "method_not_allowed", fmt.Sprintf("%s is not allowed here: %s", r.Method, methods)}
		} else {
			err = h(w, r)
		}
		seconds.Observe(time.Since(start).Seconds())
		if err == nil {
			good.Inc()
			return
		}
		status := answerError(w, err)
		s.metrics.requests.WithLabelValues(pattern, strconv.Itoa(status)).Inc()
		s.log.Debug("request failed", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	})
}

// answerError writes an error in the one form all have.
func answerError(w http.ResponseWriter, err error) (status int) {
	var e *httpError
	if !errors.As(err, &e) {
		e = classify(err)
	}
	if e.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	var body struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	body.Error.Code, body.Error.Message = e.code, e.message
	// The connection may be gone; then there is nobody to tell.
	_ = answerJSON(w, e.status, body)
	return e.status
}

// classify gives the library's errors their status.
func classify(err error) *httpError {
	status, code := http.StatusInternalServerError, "internal"
	switch {
	case errors.Is(err, errUnknown):
		status, code = http.StatusNotFound, "unknown_namespace"
	case errors.Is(err, store.ErrNotFound):
		status, code = http.StatusNotFound, "not_found"
	case errors.Is(err, firn.ErrFence):
		status, code = http.StatusServiceUnavailable, "fence_reached"
	case errors.Is(err, firn.ErrClockBack):
		status, code = http.StatusServiceUnavailable, "clock_back"
	case errors.Is(err, segment.ErrExhausted), errors.Is(err, sequence.ErrExhausted), errors.Is(err, numbering.ErrExhausted):
		status, code = http.StatusServiceUnavailable, "exhausted"
	case errors.Is(err, sequence.ErrSetBack):
		status, code = http.StatusServiceUnavailable, "set_back"
	case errors.Is(err, context.DeadlineExceeded):
		status, code = http.StatusServiceUnavailable, "timed_out"
	case errors.Is(err, segment.ErrForeign), errors.Is(err, sequence.ErrForeign): // as below
	case errors.Is(err, firn.ErrTimeExhausted):
		status, code = http.StatusServiceUnavailable, "time_exhausted"
	case errors.Is(err, firn.ErrClosed):
		status, code = http.StatusServiceUnavailable, "shutting_down"
	case errors.Is(err, lease.ErrForeign): // whatever is wrong with it, the request is not to blame
	case errors.Is(err, store.ErrUnavailable):
		status, code = http.StatusServiceUnavailable, "store_unavailable"
	case errors.Is(err, firn.ErrSyntax), errors.Is(err, firn.ErrRange):
		status, code = http.StatusBadRequest, "bad_request"
	}
	return &httpError{status, code, err.Error()}
}

func answerJSON(w http.ResponseWriter, status int, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(append(b, '\n'))
	return err
}

func plain(w http.ResponseWriter, text string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// A failed write means that the client has gone.
	_, _ = w.Write([]byte(text))
	return nil
}

// ids answers ids.
func (s *Server) ids(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	count := 1
	if text := query.Get("count"); text != "" || query.Has("count") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return badRequest("bad_count", "count %q is not a whole number from 1 to %d", text, s.batch)
		}
		if count = n; n > s.batch {
			return &httpError{http.StatusRequestEntityTooLarge, "batch_too_large",
				fmt.Sprintf("count %d is above the limit of %d ids a request", n, s.batch)}
		}
	}
	form, err := parseForm(query.Get("format"), query.Get("numbers"), r.Header.Get("Accept"))
	if err != nil {
		return err
	}
	ns, err := s.lookup(r.PathValue("namespace"), true)
	if err != nil {
		return err
	}
	if form.given && !ns.settings.numeric() {
		return badRequest("bad_format", "the ids of namespace %s, of kind %s, have one form: leave out format and numbers", ns.name, ns.settings.kind())
	}
	if form.readable && (!ns.settings.generated() || ns.settings.Veil != nil) {
		return badRequest("bad_format", "the ids of namespace %s have no time in them that could be read", ns.name)
	}
	ids, err := s.generate(r.Context(), ns, count)
	if err != nil {
		return err
	}
	body, err := form.body(ns.name, ns.layout(), ids)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", form.contentType())
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	// A failed write means that the client has gone; its ids are a gap.
	_, _ = w.Write(body)
	return nil
}

func (s *Server) decode(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	var layout firn.Layout
	if name := query.Get("namespace"); name != "" {
		if query.Has("layout") || query.Has("unit") || query.Has("epoch") {
			return badRequest("bad_request", "give a namespace, or a layout with unit and epoch, not both")
		}
		ns, err := s.lookup(name, false)
		if err != nil {
			return err
		}
		if !ns.settings.generated() || ns.settings.Veil != nil {
			return badRequest("bad_request", "the ids of namespace %s, of kind %s, cannot be taken apart here", ns.name, ns.state().Kind)
		}
		layout = ns.layout()
	} else {
		ns := Namespace{Layout: query.Get("layout"), Unit: query.Get("unit"), Epoch: query.Get("epoch")}
		var err error
		if layout, err = decode.Layout(ns.layout(), ns.Unit, ns.Epoch); err != nil {
			return badRequest("bad_layout", "%v", err)
		}
	}
	format := query.Get("format")
	if err := decode.CheckFormat(format); err != nil {
		return badRequest("bad_format", "%v", err)
	}
	result, err := decode.Text(r.PathValue("id"), format, layout, time.Now())
	if err != nil {
		return badRequest("bad_id", "%v", err)
	}
	return answerJSON(w, http.StatusOK, result)
}

func (s *Server) workers(w http.ResponseWriter, r *http.Request) error {
	pool, err := slots.Read(r.Context(), s.store, r.PathValue("pool"))
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, pool)
}
