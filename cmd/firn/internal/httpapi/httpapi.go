// Package httpapi is the HTTP and JSON interface of the server.
package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// readMethods are the methods of read-only endpoints.
const readMethods = "GET, HEAD"

// idsPath begins the paths of requests for ids.
const idsPath = "/v1/ids/"

// API is the interface. Make one with [New].
type API struct {
	service *issuing.Service
	front   *issuing.Front
	log     *slog.Logger
	bodies  sync.Pool       // of *body
	ending  context.Context // done when streams must end
	drain   context.CancelFunc

	served      []*Route // in their order
	description func() []byte
}

// New returns the interface to a service.
func New(s *issuing.Service, log *slog.Logger) *API {
	a := &API{service: s, front: s.Front(issuing.HTTP), log: log}
	a.ending, a.drain = context.WithCancel(context.Background())
	a.description = sync.OnceValue(func() []byte { return describe(a.served) })
	return a
}

// Drain ends the streams. It may be called again.
func (a *API) Drain() { a.drain() }

// Register adds the interface's requests to a mux.
func (a *API) Register(mux *http.ServeMux) {
	a.Serve(mux, &idsRoute, a.ids)
	a.answer(mux, &decodeRoute, a.decode)
	a.answer(mux, &namespacesRoute, a.listNamespaces)
	a.answer(mux, &namespaceRoute, a.oneNamespace)
	a.answer(mux, &workersRoute, a.workers)
	a.answer(mux, &releaseRoute, a.release)
	a.answer(mux, &storeRoute, a.store)
	a.Serve(mux, &eventsRoute, a.events)
	a.Serve(mux, &liveRoute, func(w http.ResponseWriter, _ *http.Request) error {
		Plain(w, "ok\n")
		return nil
	})
	a.Serve(mux, &readyRoute, a.ready)
	a.Serve(mux, &describeRoute, a.describe)
	a.answer(mux, &leaseGrantRoute, a.grantLease)
	a.answer(mux, &leaseRenewRoute, a.renewLease)
}

// Serve adds a request to a mux and to the description. Call it before the first request.
func (a *API) Serve(mux *http.ServeMux, d *Route, h func(http.ResponseWriter, *http.Request) error) {
	a.served = append(a.served, d)
	mux.Handle(d.Path, a.handle(d.Methods, h))
}

// Direct serves requests for ids itself, and passes all others to mux, which would need a sixth of the time of such a
// request to find the handler. The mux also serves paths that it would redirect or decode.
func (a *API) Direct(mux http.Handler) http.Handler {
	ids := a.handle(idsRoute.Methods, a.ids)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, found := strings.CutPrefix(r.URL.Path, idsPath)
		if !found || name == "" || name[0] == '.' || r.URL.RawPath != "" || strings.IndexByte(name, '/') >= 0 {
			mux.ServeHTTP(w, r)
			return
		}
		r.Pattern = idsRoute.Path // traces name it
		ids.ServeHTTP(w, r)
	})
}

// ready answers whether the server can issue ids, of all namespaces in the query if there are
// any. If only some namespaces can issue, the answer names the others.
func (a *API) ready(w http.ResponseWriter, r *http.Request) error {
	query, err := readyRoute.Values(r)
	if err != nil {
		return err
	}
	names := query["namespace"]
	if err := a.service.Ready(names...); err != nil {
		return err
	}
	text := "ok\n"
	if lacking := a.service.Lacking(); lacking != "" && len(names) == 0 {
		text += "but not " + lacking + "\n"
	}
	Plain(w, text)
	return nil
}

// handle checks the method, and answers errors of h.
func (a *API) handle(allowed string, h func(http.ResponseWriter, *http.Request) error) http.Handler {
	methods := strings.Split(allowed, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if slices.Contains(methods, r.Method) {
			err = h(w, r)
		} else {
			w.Header().Set("Allow", allowed)
			err = a.front.Refuse(failure.New(http.StatusMethodNotAllowed, "method_not_allowed", "%s is not allowed here: %s", r.Method, allowed))
		}
		if err != nil {
			status := Fail(w, err)
			a.log.Debug("request failed", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
		}
	})
}

// Readable passes GET and HEAD to h, and refuses other methods as the interface does.
func (a *API) Readable(h http.Handler) http.Handler {
	return a.handle(readMethods, func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	})
}

// Header values that answers share.
var (
	typeJSON = []string{"application/json"}
	typeText = []string{"text/plain; charset=utf-8"}
)

// failed is the body of all errors.
type failed struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// Fail answers an error in the form of all errors.
func Fail(w http.ResponseWriter, err error) (status int) {
	f := failure.Of(err)
	if f.Retry > 0 {
		w.Header().Set("Retry-After", failure.RetryAfter(f.Retry))
	}
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	text, _ := json.Marshal(errorBody(f)) // texts have a JSON
	write(w, f.Status, text)
	return f.Status
}

// errorBody returns the form of all errors.
func errorBody(f *failure.Failure) any {
	var body failed
	body.Error.Code, body.Error.Message = f.Code, f.Message
	return body
}

func write(w http.ResponseWriter, status int, text []byte) {
	w.Header()["Content-Type"] = typeJSON
	w.WriteHeader(status)
	// A failed write means that the client has gone.
	_, _ = w.Write(append(text, '\n'))
}

// Plain answers with a text.
func Plain(w http.ResponseWriter, text string) {
	w.Header()["Content-Type"] = typeText
	_, _ = w.Write([]byte(text)) // as above
}

// A call is a request of a caller that is known, and its query.
type call struct {
	*http.Request
	caller *access.Caller
	query  url.Values
	done   func() // called when the answer is written
}

// begin identifies the caller of a request, and reads its query.
func (a *API) begin(r *http.Request, d *Route) (*call, error) {
	caller, err := a.front.Caller(r)
	if err != nil {
		return nil, err
	}
	query, err := d.Values(r)
	if err != nil {
		return nil, a.front.Refuse(err)
	}
	return &call{Request: r, caller: caller, query: query, done: func() {}}, nil
}

// answer is Serve for requests of callers that are known: what do returns is the answer, as JSON. Bytes are JSON already.
func (a *API) answer(mux *http.ServeMux, d *Route, do func(*call) (any, error)) {
	a.Serve(mux, d, func(w http.ResponseWriter, r *http.Request) error {
		c, err := a.begin(r, d)
		if err != nil {
			return err
		}
		defer func() { c.done() }()
		body, err := do(c)
		if err != nil {
			return err
		}
		text, ok := body.([]byte)
		if !ok {
			if text, err = json.Marshal(body); err != nil {
				return a.front.Refuse(err) // internal: no request may ask for what has no JSON
			}
		}
		write(w, http.StatusOK, text) // if the client of a lease has gone, that ends by itself
		return nil
	})
}

func (a *API) decode(c *call) (any, error) {
	return a.front.Decode(c.caller, issuing.DecodeRequest{
		ID: c.PathValue("id"), Format: c.query.Get("format"), Namespace: c.query.Get("namespace"),
		Layout: c.query.Get("layout"), Unit: c.query.Get("unit"), Epoch: c.query.Get("epoch"),
	})
}

// namespaces is the answer to a request for all of them.
type namespaces struct {
	Namespaces []issuing.State `json:"namespaces"`
}

func (a *API) listNamespaces(c *call) (any, error) {
	list, release, err := a.front.List(c.caller)
	c.done = release
	return namespaces{list}, err
}

func (a *API) oneNamespace(c *call) (any, error) {
	return a.front.State(c.caller, c.PathValue("namespace"))
}

func (a *API) workers(c *call) (any, error) {
	return a.front.Slots(c.Context(), c.caller, c.PathValue("pool"))
}

func (a *API) release(c *call) (any, error) {
	worker, err := strconv.ParseInt(c.PathValue("worker"), 10, 64)
	if err != nil {
		return nil, a.front.Refuse(failure.BadRequest("bad_request", "worker %q is not a number", c.PathValue("worker")))
	}
	datacenter, err := strconv.ParseInt(cmp.Or(c.query.Get("datacenter"), "0"), 10, 64)
	if err != nil {
		return nil, a.front.Refuse(failure.BadRequest("bad_request", "datacenter %q is not a number", c.query.Get("datacenter")))
	}
	return a.front.Release(c.Context(), c.caller, c.PathValue("pool"), datacenter, worker)
}

func (a *API) store(c *call) (any, error) { return a.front.Store(c.Context(), c.caller) }
