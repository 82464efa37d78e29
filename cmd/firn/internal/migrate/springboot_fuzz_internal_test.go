package migrate

import (
	"net/http"
	"regexp"
	"testing"
)

// Whatever a client accepts, the answer has a content type that cannot end the header, or none.
func FuzzSpringTypeOfText(f *testing.F) {
	for _, accept := range []string{"", "*/*", "*", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "application/xml;q=0.5,application/json;q=x", "a/b\r\nX: y", "nonsense", "a/", "/b", "a/b/c", ",,"} {
		f.Add(accept)
	}
	form := regexp.MustCompile("^[a-z0-9!#$%&'*+.^_`|~-]+/[a-z0-9!#$%&'*+.^_`|~-]+;charset=UTF-8$")
	f.Fuzz(func(t *testing.T, accept string) {
		r := &http.Request{Header: http.Header{"Accept": {accept}}}
		if got := springTypeOfText(r); got != "" && !form.MatchString(got) {
			t.Errorf("Accept: %q gives %q", accept, got)
		}
	})
}
