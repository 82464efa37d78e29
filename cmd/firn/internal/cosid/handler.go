package cosid

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/cosid/registrar"
	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store/register"
)

type handler struct {
	cfg      Config
	machines *registrar.Registrar
	segments segment.Source
	existing segment.Source // of counters that must exist

	known sync.Map // the names that exist, each with its kind

	mu     sync.Mutex // guards logged
	logged map[string]*telemetry.Seldom
}

// logInterval is how often failures with one code are logged. Without it, all clients that
// retry while the store is unavailable would flood the log.
const logInterval = 10 * time.Second

// shouldLog reports whether to log a failure, and how many were omitted before it.
func (h *handler) shouldLog(kind string) (omitted int, ok bool) {
	h.mu.Lock()
	l := h.logged[kind]
	if l == nil { // there are only four kinds, so the map stays small
		l = telemetry.NewSeldom(logInterval)
		h.logged[kind] = l
	}
	h.mu.Unlock()
	return l.Due(h.cfg.Time.Monotonic())
}

// Handler returns the handler for all paths of CosId's proxy: /machines/, /segments/ and
// /ids. Mount it at these, or below a prefix that is stripped. It reads no request bodies, and
// leaves their limit to the server.
func Handler(cfg Config) (http.Handler, error) {
	cfg.Time = cmp.Or(cfg.Time, firn.SystemTime())
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Memory = cmp.Or(cfg.Memory, &register.Memory{})
	h := &handler{
		cfg: cfg, logged: map[string]*telemetry.Seldom{},
		machines: registrar.New(registrar.Config{Store: cfg.Store, Time: cfg.Time, Log: cfg.Log}),
	}
	var err error
	counters := segment.Config{Store: cfg.Store, Memory: cfg.Memory, Time: cfg.Time, Log: cfg.Log}
	if h.segments, err = segment.NewSource(counters); err != nil {
		return nil, fmt.Errorf("cosid: %w", err)
	}
	counters.MustExist = true
	if h.existing, err = segment.NewSource(counters); err != nil {
		return nil, fmt.Errorf("cosid: %w", err)
	}
	mux := http.NewServeMux()
	h.route(mux, "machines", "/machines/{namespace}", methods{
		http.MethodPost: h.distribute, http.MethodPatch: h.guard, http.MethodDelete: h.revert,
	})
	h.route(mux, "segments", "/segments/distributor/{namespace}/{name}", methods{http.MethodPost: h.createSegment})
	h.route(mux, "segments", "/segments/{namespace}/{name}", methods{http.MethodPatch: h.nextMaxID})
	h.route(mux, "ids", "/ids", methods{http.MethodGet: h.id})
	h.route(mux, "ids", "/ids/{name}", methods{http.MethodGet: h.id})
	h.route(mux, "ids", "/ids/as-string", methods{http.MethodGet: h.idAsString})
	h.route(mux, "ids", "/ids/as-string/{name}", methods{http.MethodGet: h.idAsString})
	h.route(mux, "other", "/", methods{})
	return mux, nil
}

// methods maps the HTTP methods of a path to their functions.
type methods map[string]func(w http.ResponseWriter, r *http.Request) error

// route adds a path to mux. Its requests are counted as the operation.
func (h *handler) route(mux *http.ServeMux, operation, path string, by methods) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		if by[method] != nil {
			allowed = append(allowed, method)
		}
	}
	allow := strings.Join(allowed, ", ")
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		began := h.cfg.Time.Monotonic()
		status, of := http.StatusOK, operation
		if f := h.serve(w, r, by, allow); f != nil {
			status = cmp.Or(f.counted, f.status)
			if f.early {
				of = "other"
			}
			f.write(w)
			h.log(r, f)
		}
		h.cfg.Observe(of, status, h.cfg.Time.Monotonic()-began)
	})
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request, by methods, allow string) *failure {
	do := by[r.Method]
	switch {
	case len(by) == 0:
		return &failure{status: http.StatusNotFound, early: true, code: codeOther, msg: fmt.Sprintf("unknown path %q: use /machines/{namespace}, /segments/… or /ids", clip(r.URL.Path))}
	case do == nil:
		w.Header().Set("Allow", allow)
		return &failure{status: http.StatusMethodNotAllowed, early: true, code: codeOther, msg: fmt.Sprintf("method %s is not allowed here: use %s", clip(r.Method), allow)}
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	if err := do(w, r.WithContext(ctx)); err != nil {
		return failureOf(err)
	}
	return nil
}

// log logs a failure: at debug level if only the client must act, as a warning if an operator
// should, because the store is unavailable or machine numbers run out or are lost, and as an
// error if it is internal.
func (h *handler) log(r *http.Request, f *failure) {
	why := cmp.Or(f.cause, error(f))
	log := h.cfg.Log.With("method", r.Method, "path", r.URL.Path, "status", f.status, "code", f.code, "error", why)
	switch {
	case r.Context().Err() != nil:
		log.Debug("CosId request canceled by its client")
	case f.code == codeOverflow, f.code == codeLost, f.status == http.StatusServiceUnavailable:
		if omitted, ok := h.shouldLog(f.code); ok {
			log.Warn("CosId request failed", "omitted", omitted)
		} else {
			log.Debug("CosId request failed")
		}
	case f.cause != nil && f.status >= http.StatusInternalServerError: // its client gets no details
		if omitted, ok := h.shouldLog("internal"); ok {
			log.Error("CosId request failed", "omitted", omitted)
		}
	default:
		log.Debug("CosId request refused")
	}
}

// name returns the Firn name of the path's parts and the caller, if it may use that. It checks access
// before it returns an error of the parameters.
func (h *handler) name(r *http.Request, p *params, parts ...string) (name string, caller *access.Caller, err error) {
	path := &params{}
	for i, part := range parts {
		parts[i] = r.PathValue(part)
		path.check(part, parts[i])
	}
	if path.err != nil {
		return "", nil, path.err
	}
	name = FirnName(parts...)
	if caller, err = h.cfg.Allow(r, name); err != nil {
		return "", nil, err
	}
	if p.err != nil {
		return "", nil, p.err
	}
	return name, caller, nil
}

// admit returns an error if a name does not exist and the client may not make it. What is a kind and a name.
func (h *handler) admit(caller *access.Caller, what string, exists func() (bool, error)) error {
	if _, known := h.known.Load(what); known {
		return nil
	}
	found, err := exists()
	if err != nil {
		return err
	}
	undo := func() {}
	if !found {
		if undo, err = h.cfg.Create(caller); err != nil {
			return err
		}
	}
	if _, meanwhile := h.known.LoadOrStore(what, true); meanwhile {
		undo()
	}
	return nil
}
