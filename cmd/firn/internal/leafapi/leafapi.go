// Package leafapi answers clients of Leaf, Meituan's issuing service, as its server
// does: a key is a namespace.
//
// Left out are /cache and /db, which show people the two buffers of a Leaf node and its
// table: a namespace has neither, and is seen at /v1/namespaces, where access is checked.
package leafapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// API is the interface. Make one with [New].
type API struct {
	front   *issuing.Front
	reader  issuing.Reader
	log     *slog.Logger
	zone    *time.Location
	batches sync.Pool // of *issuing.Batch
}

// New returns the interface to a service. Times of ids are shown in zone; there it is
// that of the machine or its variable TZ.
func New(s *issuing.Service, zone *time.Location, log *slog.Logger) *API {
	front := s.Front(issuing.Leaf)
	return &API{front: front, reader: front.Reader(), zone: zone, log: log}
}

// The requests.
const (
	segmentPath   = "/api/segment/get/"
	snowflakePath = "/api/snowflake/get/"
	decodePath    = "/decodeSnowflakeId"
)

// Register adds the interface's requests to a mux.
func (a *API) Register(mux *http.ServeMux) {
	h := a.Prefixed(http.NotFoundHandler())
	for _, path := range []string{segmentPath + "{key}", snowflakePath + "{key}", decodePath} {
		mux.Handle(path, h)
		mux.Handle(path+"/{$}", h)
	}
}

// Prefixed answers the interface's requests behind any prefix of the path, as
// /gateway/api/segment/get/orders, and has next answer all else.
func (a *API) Prefixed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimSuffix(r.URL.Path, "/")
		cut := strings.LastIndexByte(path, '/') + 1
		key := path[cut:]
		switch {
		case key == "":
			next.ServeHTTP(w, r)
		case strings.HasSuffix(path[:cut], segmentPath):
			a.serve(w, r, key, segmentMode)
		case strings.HasSuffix(path[:cut], snowflakePath):
			a.serve(w, r, key, snowflakeMode)
		case strings.HasSuffix(path, decodePath):
			if !httpapi.SpringAccepts(w, r) {
				a.front.Answered(http.StatusMethodNotAllowed)
				return
			}
			a.decode(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// A mode is one of Leaf's two ways to make ids.
type mode struct {
	kinds []string                   // of namespaces
	code  func(*failure.Failure) int // of a failure, in Leaf's numbers
}

// kindsFrom returns the kinds whose ids are numbers of these sources.
func kindsFrom(sources ...settings.Source) (names []string) {
	for _, k := range settings.Kinds {
		if k.Numeric && slices.Contains(sources, k.Source) {
			names = append(names, k.Name)
		}
	}
	return names
}

// fits refuses a namespace whose ids are not of the mode.
func (m mode) fits(ns *issuing.Namespace) error {
	if ns.Numeric() && slices.Contains(m.kinds, ns.Kind()) {
		return nil
	}
	return failure.New(http.StatusNotFound, errKind, "namespace %s is of kind %s, or written with a prefix: numbers of %s are asked for",
		ns.Name(), ns.Kind(), strings.Join(m.kinds, " or "))
}

// The numbers of Leaf's failures. Its segments know: not initialised, no such key, no
// ids left; its snowflakes: the clock still behind after a wait, interrupted, too far behind.
const (
	notInitialised, noKey, noIDs        = -1, -2, -3
	stillBehind, interrupted, farBehind = -1, -2, -3
)

// errKind: the key is there, but its ids are not of the mode that was asked for.
const errKind = "wrong_kind"

var segmentMode = mode{
	kinds: kindsFrom(settings.Ranges, settings.Counter),
	code: func(f *failure.Failure) int {
		switch f.Code {
		case "unknown_namespace", "bad_request", errKind:
			return noKey
		case "shutting_down", "not_ready":
			return notInitialised
		}
		return noIDs
	},
}

var snowflakeMode = mode{
	kinds: kindsFrom(settings.Generator),
	code: func(f *failure.Failure) int {
		switch f.Code {
		case "unknown_namespace", "bad_request", errKind:
			return noKey // there any key will do; here it is a namespace
		case "clock_back":
			return farBehind
		case "canceled":
			return interrupted
		}
		return stillBehind
	},
}

// serve answers one id, or the failure; never a number that is not an id.
func (a *API) serve(w http.ResponseWriter, r *http.Request, key string, m mode) {
	start := time.Now()
	defer func() { a.front.Observe(time.Since(start)) }()
	if !httpapi.SpringAccepts(w, r) {
		a.front.Answered(http.StatusMethodNotAllowed)
		return
	}
	var room [20]byte
	body, err := a.next(r, key, m, room[:0])
	if err != nil {
		a.fail(w, r, m, err)
		return
	}
	httpapi.SpringAnswer(w, httpapi.SpringTypeOfText(r), body)
}

// next appends an id to b.
func (a *API) next(r *http.Request, key string, m mode, b []byte) ([]byte, error) {
	caller, err := a.front.Caller(r)
	if err != nil {
		return b, err
	}
	batch, ok := a.batches.Get().(*issuing.Batch)
	if !ok {
		batch = new(issuing.Batch)
	}
	defer a.batches.Put(batch) // one id holds nothing that would be released
	if _, err := a.front.Issue(r.Context(), caller, issuing.Ask{Namespace: key, Count: 1, Fits: m.fits}, batch); err != nil {
		return b, err
	}
	return strconv.AppendInt(b, int64(batch.IDs[0]), 10), nil
}

// fail answers an error. What Leaf does not know, as that a caller may not or asks too
// often, keeps its status.
func (a *API) fail(w http.ResponseWriter, r *http.Request, m mode, err error) {
	f := failure.Of(err)
	a.log.Debug("request failed", "method", r.Method, "path", r.URL.Path, "code", f.Code, "error", err)
	httpapi.SpringNote(w, f)
	switch f.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		httpapi.SpringFail(w, r, f.Status, "", f.Message)
		return
	}
	httpapi.SpringFail(w, r, http.StatusInternalServerError, "com.sankuai.inf.leaf.server.exception.LeafServerException",
		fmt.Sprintf("Result{id=%d, status=EXCEPTION}", m.code(f)))
}

// decode takes an id of Leaf's layout apart, or of the namespace's that is named.
func (a *API) decode(w http.ResponseWriter, r *http.Request) {
	caller, err := a.front.Caller(r)
	if err != nil {
		f := failure.Of(err)
		httpapi.SpringNote(w, f)
		httpapi.SpringFail(w, r, f.Status, "", f.Message)
		return
	}
	query := r.URL.Query()
	if !query.Has("snowflakeId") {
		f := a.front.Refuse(failure.BadRequest("bad_request", "the parameter snowflakeId is missing"))
		httpapi.SpringNote(w, f)
		httpapi.SpringFail(w, r, f.Status, "org.springframework.web.bind.MissingServletRequestParameterException", f.Message)
		return
	}
	ask := issuing.DecodeRequest{ID: query.Get("snowflakeId"), Format: "decimal", Namespace: query.Get("namespace")}
	if ask.Namespace == "" {
		ask.Layout = "leaf"
	}
	result, err := a.reader.Decode(caller, ask)
	var f *failure.Failure
	switch {
	case errors.As(err, &f) && f.Code == "bad_id":
		httpapi.SpringNote(w, f)
		httpapi.SpringAnswer(w, httpapi.SpringTypeJSON, []byte(`{"errorMsg":"snowflake Id反解析发生异常!"}`))
	case err != nil: // of a namespace, which Leaf does not know
		f := failure.Of(err)
		httpapi.SpringNote(w, f)
		httpapi.SpringFail(w, r, f.Status, "", f.Message)
	default:
		httpapi.SpringAnswer(w, httpapi.SpringTypeJSON, httpapi.SpringEncode(struct {
			Timestamp  string `json:"timestamp"`
			SequenceID string `json:"sequenceId"`
			WorkerID   string `json:"workerId"`
		}{
			fmt.Sprintf("%d(%s)", result.Time.UnixMilli(), result.Time.In(a.zone).Format("2006-01-02 15:04:05.000")),
			strconv.FormatInt(result.Sequence, 10), strconv.FormatInt(result.Worker, 10),
		}))
	}
}
