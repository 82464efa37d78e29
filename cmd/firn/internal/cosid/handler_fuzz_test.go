package cosid_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzRequest checks that every request gets an answer, and that errors have the format of the
// original.
func FuzzRequest(f *testing.F) {
	for _, e := range exchanges {
		method, target, _ := strings.Cut(e.request, " ")
		path, query, _ := strings.Cut(target, "?")
		f.Add(method, path, query)
	}
	h := serve(f, config())
	f.Fuzz(func(t *testing.T, method, path, query string) {
		r, err := http.NewRequest(method, "http://localhost/", nil)
		if err != nil {
			return // an invalid method
		}
		if r.URL, err = url.Parse("http://localhost/" + strings.TrimPrefix(path, "/")); err != nil {
			return
		}
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusOK || w.Code/100 == 3 { // an unclean path is redirected
			return
		}
		var body struct {
			Code, Msg *string
			Errors    *[]string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Code == nil || body.Msg == nil || body.Errors == nil {
			t.Fatalf("%s %s?%s: %d %s", method, path, query, w.Code, w.Body)
		}
	})
}
