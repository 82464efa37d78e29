package migrate

import (
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// TakesForm reports whether the parameters of a request may be in its body. No other request of the server has a body
// that is used.
func (t *TinyID) TakesForm(r *http.Request) bool {
	if _, ok := t.at(r.URL.Path); !ok {
		return false
	}
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return false
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // a bad parameter does not matter
	return kind == "application/x-www-form-urlencoded"
}

// parameters are the parameters of a request.
type parameters struct {
	bizType, token string
	count          int // the answer has no ids if it is 0 or less
}

// parse reads the parameters from the query or a form.
func (t *TinyID) parse(r *http.Request, asked tinyidRequest) (parameters, error) {
	texts := []string{r.URL.RawQuery}
	if r.ContentLength != 0 && t.TakesForm(r) {
		form, err := io.ReadAll(r.Body)
		if err != nil {
			return parameters{}, failure.BadRequest("bad_request", "the body of the request cannot be read: %v", err)
		}
		r.Body = http.NoBody // it need not outlive the parameters
		texts = append(texts, string(form))
	}
	p := parameters{bizType: first(texts, "bizType"), token: first(texts, "token"), count: 1}
	text := strings.TrimSpace(first(texts, "batchSize"))
	if !asked.ids || text == "" {
		return p, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return p, failure.BadRequest("bad_count", "batchSize %q is not a number from %d to %d", text, math.MinInt32, math.MaxInt32)
	}
	p.count = min(int(n), t.front.Limits().MaxBatch())
	return p, nil
}

// first returns the first value of a key in texts such as a query, like [url.ParseQuery] without the parts that it
// cannot read. It makes no map of all keys: that would occupy up to a hundred times the memory of the text.
func first(texts []string, key string) string {
	for _, text := range texts {
		for pair := range strings.SplitSeq(text, "&") {
			name, value, _ := strings.Cut(pair, "=")
			if strings.Contains(pair, ";") || !unescapes(&name) || name != key || !unescapes(&value) {
				continue
			}
			return strings.Clone(value) // without the rest of the text
		}
	}
	return ""
}

// unescapes replaces a text of a query by what it stands for. It reports whether that is possible.
func unescapes(text *string) bool {
	plain, err := url.QueryUnescape(*text)
	*text = plain
	return err == nil
}
