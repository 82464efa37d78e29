package migrate

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/console"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// Leaf implements the HTTP interface of Leaf. A key of Leaf is the name of a namespace. Make one with [NewLeaf].
//
// Leaf's pages /cache and /db show the two buffers of a Leaf node and its table, which a
// namespace does not have. They lead a browser to the console, and others to /v1/namespaces. Both show namespaces, and
// check access.
type Leaf struct {
	spring
	zone    *time.Location
	batches sync.Pool // of *issuing.Batch
}

// NewLeaf returns the interface to a service. Decoded times are shown in zone; Leaf uses that of its
// machine.
func NewLeaf(s *issuing.Service, zone *time.Location, log *slog.Logger) *Leaf {
	return &Leaf{spring: spring{s.Front(issuing.Leaf), log}, zone: zone}
}

const (
	segmentPath   = "/api/segment/get/"
	snowflakePath = "/api/snowflake/get/"
	decodePath    = "/decodeSnowflakeId"
)

// Register adds the interface's requests to a mux. Other paths below Leaf's do not exist there.
func (l *Leaf) Register(mux *http.ServeMux) {
	h := l.Prefixed(http.HandlerFunc(l.notFound))
	for _, path := range []string{segmentPath + "{key}", snowflakePath + "{key}", decodePath} {
		mux.Handle(path, h)
		mux.Handle(path+"/{$}", h)
	}
	for _, below := range []string{"/api/segment", "/api/segment/", "/api/snowflake", "/api/snowflake/", decodePath + "/"} {
		mux.Handle(below, h)
	}
	for _, page := range []string{"/cache", "/db"} {
		mux.Handle(page, http.HandlerFunc(l.namespaces))
	}
}

// namespaces answers a request for one of Leaf's pages.
func (l *Leaf) namespaces(w http.ResponseWriter, r *http.Request) {
	l.front.Answered(http.StatusFound)
	to := "v1/namespaces" // relative, as there may be a prefix that a proxy strips
	if console.Wanted(r) {
		to = console.Location
	}
	w.Header()["Location"] = []string{to}
	w.Header()["Vary"] = []string{"Accept"}
	w.WriteHeader(http.StatusFound)
}

// Prefixed serves the interface's requests below any prefix, such as
// /gateway/api/segment/get/orders, and passes other requests to next.
func (l *Leaf) Prefixed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimSuffix(r.URL.Path, "/")
		cut := strings.LastIndexByte(path, '/') + 1
		key := path[cut:]
		switch {
		case key == "":
			next.ServeHTTP(w, r)
		case strings.HasSuffix(path[:cut], segmentPath):
			l.serve(w, r, key, segmentMode)
		case strings.HasSuffix(path[:cut], snowflakePath):
			l.serve(w, r, key, snowflakeMode)
		case strings.HasSuffix(path, decodePath):
			if _, ok := l.accepts(w, r, false); ok {
				l.decode(w, r)
			}
		case strings.Contains(path, segmentPath), strings.Contains(path, snowflakePath):
			l.notFound(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// A mode is one of Leaf's two ways to make ids.
type mode struct {
	verb  settings.Verb
	codes map[string]int // Leaf's numbers for failures, by their codes
	other int            // for all others
}

// code returns Leaf's number for a failure.
func (m mode) code(f *failure.Failure) int {
	if code, ok := m.codes[f.Code]; ok {
		return code
	}
	return m.other
}

// fits refuses a namespace that the mode does not serve.
func (m mode) fits(ns *issuing.Namespace) error {
	if ns.Lacks(m.verb) == "" {
		return nil
	}
	var kinds []string
	for _, k := range settings.Kinds {
		if (settings.Namespace{Kind: k.Name}).Lacks(m.verb) == "" {
			kinds = append(kinds, k.Name)
		}
	}
	return failure.New(http.StatusNotFound, errKind, "namespace %s, of kind %s, is not served here: this path needs kind %s, without a prefix",
		ns.Name(), ns.Kind(), strings.Join(kinds, " or "))
}

// Leaf's numbers for failures. Segment mode: not initialised, unknown key, no ids left.
// Snowflake mode: the clock is still behind after a wait, interrupted, the clock is too far
// behind.
const (
	notInitialised, noKey, noIDs        = -1, -2, -3
	stillBehind, interrupted, farBehind = -1, -2, -3
)

// errKind: the namespace exists, but the mode does not serve its kind.
const errKind = "wrong_kind"

var segmentMode = mode{
	verb: settings.SingleCounted, other: noIDs,
	codes: map[string]int{
		"unknown_namespace": noKey, "bad_request": noKey, errKind: noKey,
		"shutting_down": notInitialised, "not_ready": notInitialised,
	},
}

var snowflakeMode = mode{
	verb: settings.SingleGenerated, other: stillBehind,
	codes: map[string]int{
		"unknown_namespace": noKey, "bad_request": noKey, errKind: noKey, // Leaf accepts any key here, but Firn needs a namespace
		"clock_back": farBehind, "canceled": interrupted,
	},
}

// serve answers with one id, or with an error in Leaf's form. A failure must never look like
// an id.
func (l *Leaf) serve(w http.ResponseWriter, r *http.Request, key string, m mode) {
	start := time.Now()
	defer func() { l.front.Observe(time.Since(start)) }()
	contentType, ok := l.accepts(w, r, true)
	if !ok {
		return
	}
	var room [20]byte
	body, err := l.next(r, key, m, room[:0])
	if err != nil {
		l.fail(w, r, m, err)
		return
	}
	springWrite(w, http.StatusOK, contentType, body)
}

// next appends an id to b.
func (l *Leaf) next(r *http.Request, key string, m mode, b []byte) ([]byte, error) {
	caller, err := l.front.Caller(r)
	if err != nil {
		return b, err
	}
	batch, ok := l.batches.Get().(*issuing.Batch)
	if !ok {
		batch = new(issuing.Batch)
	}
	defer l.batches.Put(batch) // a batch of one id holds nothing to release
	if _, err := l.front.Issue(r.Context(), caller, issuing.Ask{Namespace: key, Count: 1, Fits: m.fits}, batch); err != nil {
		return b, err
	}
	return strconv.AppendInt(b, int64(batch.IDs[0]), 10), nil
}

// fail answers with an error. Leaf has no access control and no rate limits; such errors keep
// their status.
func (l *Leaf) fail(w http.ResponseWriter, r *http.Request, m mode, err error) {
	f := failure.Of(err)
	l.log.Debug("request failed", "method", r.Method, "path", r.URL.Path, "code", f.Code, "error", err)
	switch f.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		springRefuse(w, r, f, "")
		return
	}
	springNote(w, f)
	springFail(w, r, http.StatusInternalServerError, "com.sankuai.inf.leaf.server.exception.LeafServerException",
		fmt.Sprintf("Result{id=%d, status=EXCEPTION}", m.code(f)))
}

// decode decodes an id: with the layout of the parameter namespace, else with Leaf's.
func (l *Leaf) decode(w http.ResponseWriter, r *http.Request) {
	caller, err := l.front.Caller(r)
	if err != nil {
		springRefuse(w, r, failure.Of(err), "")
		return
	}
	query := r.URL.Query()
	if !query.Has("snowflakeId") {
		f := l.front.Refuse(failure.BadRequest("bad_request", "the parameter snowflakeId is missing"))
		springNote(w, f)
		springFail(w, r, f.Status, "org.springframework.web.bind.MissingServletRequestParameterException",
			"Required String parameter 'snowflakeId' is not present")
		return
	}
	ask := issuing.DecodeRequest{ID: query.Get("snowflakeId"), Format: "decimal", Namespace: query.Get("namespace")}
	if ask.Namespace == "" {
		ask.Layout = "leaf"
	}
	decoded, err := l.front.Decode(caller, ask)
	result := decoded.Parts
	if err == nil && result == nil {
		err = l.front.Refuse(failure.BadRequest("bad_request", "the ids of namespace %s, of kind %s, have no worker in them", ask.Namespace, decoded.Kind))
	}
	if err == nil && result.Note != "" {
		err = l.front.Refuse(failure.BadRequest("bad_id", "%s", result.Note))
	}
	f, _ := errors.AsType[*failure.Failure](err)
	switch {
	case f != nil && f.Code == "bad_id":
		springNote(w, f)
		springWrite(w, http.StatusOK, springTypeJSON, []byte(`{"errorMsg":"snowflake Id反解析发生异常!"}`))
	case err != nil: // an error of the parameter namespace, which Leaf does not have
		springRefuse(w, r, failure.Of(err), "")
	default:
		springWrite(w, http.StatusOK, springTypeJSON, springEncode(struct { // in Leaf's order
			WorkerID   string `json:"workerId"`
			SequenceID string `json:"sequenceId"`
			Timestamp  string `json:"timestamp"`
		}{
			strconv.FormatInt(result.Worker, 10), strconv.FormatInt(result.Sequence, 10),
			fmt.Sprintf("%d(%s)", result.Time.UnixMilli(), result.Time.In(l.zone).Format("2006-01-02 15:04:05.000")),
		}))
	}
}
