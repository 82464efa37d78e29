package cosid

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	public "github.com/firn-id/firn/cmd/firn/internal/failure"
)

// params are the parameters in a request's query. A form in the body is ignored, as in the
// original. Err is the first mistake.
type params struct {
	values url.Values
	err    *failure
}

func paramsOf(r *http.Request) *params {
	values, err := url.ParseQuery(r.URL.RawQuery)
	p := &params{values: values}
	if err != nil {
		p.fail(unreadable("invalid query: %v", err))
	}
	return p
}

func (p *params) fail(f *failure) {
	if p.err == nil {
		p.err = f
	}
}

// text returns a required parameter, which may be empty.
func (p *params) text(name string) string {
	all, ok := p.values[name]
	if !ok {
		p.fail(unreadable("parameter %s is missing", name))
		return ""
	}
	return all[0]
}

// integer returns an integer of so many bits.
func (p *params) integer(name string, bits int) int64 {
	text := p.text(name)
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, bits)
	if err != nil {
		p.fail(unreadable("parameter %s is %q, not an integer of %d bits", name, clip(text), bits))
	}
	return n
}

// boolean returns a boolean, in one of the words that Spring accepts.
func (p *params) boolean(name string) bool {
	text := p.text(name)
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "on", "yes", "1":
		return true
	case "false", "off", "no", "0":
		return false
	}
	p.fail(unreadable("parameter %s is %q, neither true nor false", name, clip(text)))
	return false
}

// duration returns a safe-guard time in milliseconds.
func (p *params) duration(name string) int64 {
	ms, err := ParseDuration(p.text(name))
	switch {
	case err != nil:
		p.fail(unreadable("parameter %s: %v", name, err))
	case ms < 1:
		// With 0 or less, an instance could take any other's machine number.
		p.fail(refused("parameter %s is %d ms; it must be at least 1 ms, and is usually five minutes, PT5M", name, ms))
	}
	return ms
}

// instance returns the name of an instance.
func (p *params) instance(name string) string {
	text := p.text(name)
	p.check("parameter "+name, text)
	return text
}

// check refuses invalid names.
func (p *params) check(what, text string) {
	switch {
	case text == "":
		p.fail(refused("%s is empty", what))
	case len(text) > maxRawName:
		p.fail(refused("%s has %d bytes; at most %d are allowed", what, len(text), maxRawName))
	case !utf8.ValidString(text):
		p.fail(refused("%s is %q, which is not UTF-8", what, text))
	case strings.ContainsFunc(text, unicode.IsControl):
		p.fail(refused("%s is %q, which contains control characters", what, text))
	}
}

// clip shortens a text for use in a message.
func clip(text string) string { return public.Clip(text, 40) }
