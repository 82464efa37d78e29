package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// parameters returns the query of a request that may have these parameters. An unreadable query is an error, since
// the unreadable part may be one of them. So is another parameter: it may be a typing mistake in one of them.
func parameters(r *http.Request, allowed ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failure.BadRequest("bad_request", "the query cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case slices.Contains(allowed, name):
		case len(allowed) == 0:
			return nil, failure.BadRequest("bad_request", "%q is not a parameter here: there are none", name)
		default:
			return nil, failure.BadRequest("bad_request", "%q is not a parameter here. Allowed: %s", name, strings.Join(allowed, ", "))
		}
	}
	return query, nil
}

// single is parameters that may occur once each.
func single(r *http.Request, allowed ...string) (url.Values, error) {
	query, err := parameters(r, allowed...)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if values := query[name]; len(values) > 1 {
			return nil, failure.BadRequest("bad_request", "%s is given %d times, as %q: give it once", name, len(values), values)
		}
	}
	return query, nil
}

// filled returns an error if a parameter has no value.
func filled(query url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if query.Get(name) == "" {
			return failure.BadRequest("bad_request", "%s is empty: give it a value, or leave it out", name)
		}
	}
	return nil
}
