package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// A Route declares a request of the interface. The mux, the check of its parameters and the description at
// /openapi.json use it.
type Route struct {
	Name    string // for the methods of generated clients
	Path    string // as [http.ServeMux] and OpenAPI write it
	Methods string // as Allow writes them
	Says    string // what it does
	Query   []Parameter
	Filled  bool // no parameter of the query may be empty
	Header  []Parameter
	Answer  map[string]shape // by media type
	Open    bool             // every caller is served
	Always  bool             // also while the server starts
	Codes   map[int][]string // the codes of its errors, by status, beside those of all requests
}

// A Parameter declares a parameter of a request. One that occurs more than once is refused, unless it has Many.
type Parameter struct {
	Name string
	Help string
	Form schema
	Many bool
}

// inPath says what the parameters of paths are.
var inPath = map[string]string{
	"namespace": "the name of a namespace", "pool": "the name of a pool of workers", "worker": "the number of a worker", "id": "an id in any text form; escape it, as in R%2F7",
}

// commonCodes are the codes of all requests, by status.
var commonCodes = map[int][]string{
	http.StatusBadRequest: {"bad_request"}, http.StatusRequestEntityTooLarge: {"body_too_large"},
	http.StatusRequestHeaderFieldsTooLarge: {"bad_request"}, http.StatusInternalServerError: {"internal"},
	http.StatusServiceUnavailable: {"overloaded", "too_many_connections"},
}

// A shape is what a body looks like. Only a description needs it, and makes it.
type shape struct {
	name   string // for the types of generated clients; empty: they need none
	schema func() schema
}

// inJSON returns the answer of a request that answers JSON alone.
func inJSON(name string, body func() schema) map[string]shape {
	return map[string]shape{"application/json": {name, body}}
}

// plainText is the shape of texts, and inText the answer of a request that answers text alone.
var (
	plainText = shape{schema: func() schema { return text }}
	inText    = map[string]shape{"text/plain": plainText}
)

// unavailable are the codes of a namespace that cannot issue ids now. A retry makes sense, except after store_mismatch.
var unavailable = []string{
	"fence_reached", "clock_back", "time_exhausted", "exhausted", "set_back", "timed_out", "canceled", "store_unavailable",
	"joining", "shutting_down", "namespace_changed", failure.Mismatch,
}

// The requests. Those for ids have an effect, so HEAD is not allowed.
var (
	idsRoute = Route{
		Name: "ids", Path: "/v1/ids/{namespace}", Methods: "GET, POST",
		Says: "Issues ids. All are answered, or none. A retry after any error is safe: the ids of a lost answer are never issued again.",
		Query: []Parameter{
			{Name: "count", Help: "how many ids; at most limits.batch of the configuration, by default 100000, and what the rate allows", Form: schema{"type": "integer", "minimum": 1, "default": 1}},
			{Name: "format", Help: "how numbers are written; without it in decimal", Form: schema{"type": "string", "enum": append(decode.Encodings(), readable)}},
			{Name: "numbers", Help: "whether ids are JSON numbers, which JavaScript rounds above 2^53; only with decimal ids", Form: schema{"type": "boolean", "default": false}},
			{Name: "once", Help: onceParameter.Help + ". The header " + onceHeader + " has it", Form: text},
		},
		Header: []Parameter{timeoutHeader},
		Answer: map[string]shape{"application/json": {"IDs", ids}, "text/plain": plainText},
		Codes: map[int][]string{
			http.StatusBadRequest: {"bad_count", "bad_format"}, http.StatusForbidden: {"forbidden"}, http.StatusNotFound: {"unknown_namespace"},
			http.StatusRequestEntityTooLarge: {"batch_too_large"}, http.StatusTooManyRequests: {"rate_limited", "too_many_names"}, http.StatusServiceUnavailable: unavailable,
		},
	}
	decodeRoute = Route{
		Name: "decode", Path: "/v1/decode/{id}", Methods: readMethods, Filled: true, // an empty namespace or layout would be the default layout
		Says: "Decodes an id: as the namespace that issued it, or without a namespace by its form.",
		Query: []Parameter{
			{Name: "format", Help: "the encoding of a number, as of the request for ids, or " + strings.Join(decode.Foreign(), ", ") + "; it is detected otherwise", Form: text},
			{Name: "namespace", Help: "the namespace that issued it", Form: text},
			{Name: "layout", Help: "a preset or bits, such as 41/0/10/12; not with namespace", Form: text},
			{Name: "unit", Help: "the length of a tick, such as 1ms; not with namespace", Form: text},
			{Name: "epoch", Help: "the start of the first tick: RFC 3339, a date or Unix milliseconds; not with namespace", Form: text},
		},
		Answer: inJSON("Decoded", contents),
		Codes: map[int][]string{
			http.StatusBadRequest: {"bad_format", "bad_layout", "bad_id"}, http.StatusForbidden: {"forbidden"}, http.StatusNotFound: {"unknown_namespace"},
		},
	}
	namespacesRoute = Route{
		Name: "namespaces", Path: "/v1/namespaces", Methods: readMethods,
		Says:   "Settings and states of all namespaces that the caller may use.",
		Answer: inJSON("Namespaces", listOfNamespaces),
	}
	namespaceRoute = Route{
		Name: "namespace", Path: "/v1/namespaces/{namespace}", Methods: readMethods,
		Says:   "Settings and state of a namespace.",
		Answer: inJSON("Namespace", of[issuing.State]),
		Codes:  map[int][]string{http.StatusForbidden: {"forbidden"}, http.StatusNotFound: {"unknown_namespace"}},
	}
	workersRoute = Route{
		Name: "workers", Path: "/v1/pools/{pool}/workers", Methods: readMethods,
		Says:   "The slots of a pool, as the store has them. For administrators.",
		Answer: inJSON("Pool", of[issuing.Pool]),
		Codes: map[int][]string{
			http.StatusForbidden: {"forbidden"}, http.StatusNotFound: {"not_found"},
			http.StatusServiceUnavailable: {"store_unavailable", "timed_out", "canceled", failure.Mismatch},
		},
	}
	releaseRoute = Route{
		Name: "releaseWorker", Path: "/v1/pools/{pool}/workers/{worker}/release", Methods: "POST", Filled: true,
		Says: "Takes a worker from its holder, which continues with another one. The fence stays, so no id is issued twice. For administrators.",
		Query: []Parameter{
			{Name: "datacenter", Help: "of the worker", Form: schema{"type": "integer", "minimum": 0, "default": 0}},
		},
		Answer: inJSON("Slot", of[issuing.Slot]),
		Codes: map[int][]string{
			http.StatusForbidden: {"forbidden"}, http.StatusNotFound: {"not_found"},
			http.StatusServiceUnavailable: {"store_unavailable", "timed_out", "canceled", failure.Mismatch},
		},
	}
	storeRoute = Route{
		Name: "store", Path: "/v1/store", Methods: readMethods,
		Says:   "What firn doctor finds about the store without a write, at most 10 s old. For administrators.",
		Answer: inJSON("Store", of[issuing.StoreView]),
		Codes:  map[int][]string{http.StatusForbidden: {"forbidden"}, http.StatusServiceUnavailable: {"canceled"}},
	}
	eventsRoute = Route{
		Name: "events", Path: "/v1/events", Methods: readMethods,
		Says:   "The state that the caller may see, each second, as server-sent events.",
		Query:  []Parameter{{Name: "namespace", Help: "only these; at most 100", Form: text, Many: true}},
		Answer: map[string]shape{"text/event-stream": plainText},
		Codes:  map[int][]string{http.StatusTooManyRequests: {"too_many_streams"}, http.StatusServiceUnavailable: {"shutting_down"}},
	}
	liveRoute = Route{
		Name: "livez", Path: "/livez", Methods: readMethods, Open: true, Always: true,
		Says: "Answers while the process runs.", Answer: inText,
	}
	readyRoute = Route{
		Name: "readyz", Path: "/readyz", Methods: readMethods, Open: true,
		Says:   "Answers whether all pools have been joined, and any namespace can issue ids.",
		Query:  []Parameter{{Name: "namespace", Help: "all of these must be able to", Form: text, Many: true}},
		Answer: inText,
		Codes: map[int][]string{
			http.StatusNotFound: {"unknown_namespace"}, http.StatusServiceUnavailable: {"not_ready", "shutting_down"},
		},
	}
	describeRoute = Route{
		Name: "openapi", Path: "/openapi.json", Methods: readMethods, Open: true,
		Says: "This description.", Answer: inJSON("", anyObject),
	}
	// Metrics is the request for metrics.
	Metrics = Route{
		Name: "metrics", Path: "/metrics", Methods: readMethods,
		Says: "Metrics for Prometheus. For administrators, unless anonymous_metrics is set.", Answer: inText,
		Codes: map[int][]string{http.StatusForbidden: {"forbidden"}},
	}
)

// Values returns the query of a request. An unreadable query is an error, since the unreadable part may be one of the
// parameters. So is another parameter: it may be a typing mistake in one of them.
func (d *Route) Values(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failure.BadRequest("bad_request", "the query cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		i := slices.IndexFunc(d.Query, func(p Parameter) bool { return p.Name == name })
		values := query[name]
		switch {
		case len(d.Query) == 0:
			return nil, failure.BadRequest("bad_request", "%q is not a parameter here: there are none", name)
		case i < 0:
			return nil, failure.BadRequest("bad_request", "%q is not a parameter here. Allowed: %s", name, strings.Join(namesOf(d.Query), ", "))
		case len(values) > 1 && !d.Query[i].Many:
			return nil, failure.BadRequest("bad_request", "%s is given %d times, as %q: give it once", name, len(values), values)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if d.Filled && query.Get(name) == "" {
			return nil, failure.BadRequest("bad_request", "%s is empty: give it a value, or leave it out", name)
		}
	}
	return query, nil
}

func namesOf(of []Parameter) (names []string) {
	for _, p := range of {
		names = append(names, p.Name)
	}
	return names
}
