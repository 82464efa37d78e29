package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// maxKept bounds the memory of a body that is kept for later answers.
const maxKept = 1 << 20

// buffered is up to which length net/http sets Content-Length by itself, at less cost.
const buffered = 2 << 10

// body is the reusable memory of a body. It is taken after the ids, since a request may wait for them.
type body struct{ b []byte }

// ids answers ids.
func (a *API) ids(w http.ResponseWriter, r *http.Request) error {
	start := time.Now()
	defer func() { a.front.Observe(time.Since(start)) }()
	caller, err := a.front.Caller(r)
	if err != nil {
		return err
	}
	ask, form, once, err := a.parse(r)
	if err != nil {
		return a.front.Refuse(err)
	}
	made := a.service.Batch()
	defer a.service.Recycle(made)
	ctx, cancel, err := within(r)
	if err != nil {
		return a.front.Refuse(err)
	}
	defer cancel()
	ns, err := a.front.Issue(ctx, caller, ask, made)
	if err != nil {
		return err
	}
	text, ok := a.bodies.Get().(*body)
	if !ok {
		text = new(body)
	}
	defer a.recycleBody(text)
	if text.b, err = form.body(text.b[:0], ns, made); err != nil {
		return a.front.Refuse(err)
	}
	header := w.Header()
	header["Content-Type"] = form.contentType()
	if once != "" {
		header[onceHeader] = []string{once}
	}
	if len(text.b) > buffered {
		header["Content-Length"] = []string{strconv.Itoa(len(text.b))}
	}
	// A failed write means that the client has gone; its ids are a gap.
	_, _ = w.Write(text.b)
	return nil
}

// maxTimeout bounds the time-out of a request, in milliseconds: a day. The server's own bound is shorter.
const maxTimeout = 86_400_000

var timeoutHeader = Parameter{
	Name: "Firn-Timeout-Ms", Help: "after how many milliseconds the request fails with the code canceled; by default the server waits up to 10 seconds for its store",
	Form: schema{"type": "integer", "minimum": 1, "maximum": maxTimeout},
}

// within returns the context of a request, with the time-out that its client asks for.
func within(r *http.Request) (context.Context, context.CancelFunc, error) {
	text := r.Header.Get(timeoutHeader.Name)
	if text == "" {
		return r.Context(), func() {}, nil
	}
	ms, err := strconv.Atoi(text)
	if err != nil || ms < 1 || ms > maxTimeout {
		return nil, nil, failure.BadRequest("bad_request", "%s %q is not a whole number from 1 to %d", timeoutHeader.Name, text, maxTimeout)
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(ms)*time.Millisecond)
	return ctx, cancel, nil
}

// recycleBody keeps the memory of a body, unless it is large.
func (a *API) recycleBody(text *body) {
	if cap(text.b) <= maxKept {
		a.bodies.Put(text)
	}
}

// onceHeader repeats the parameter once in an answer of ids, whose body may be plain text.
const onceHeader = "Firn-Once"

// parse returns what a request asks for, the form of its answer, and its parameter once.
func (a *API) parse(r *http.Request) (ask issuing.Ask, f form, once string, err error) {
	ask = issuing.Ask{Namespace: strings.TrimPrefix(r.URL.Path, idsPath), Count: 1}
	if r.URL.RawQuery == "" {
		f, err = parseForm("", "", r.Header.Get("Accept"))
		return ask, f, "", err
	}
	query, err := idsRoute.Values(r)
	if err != nil {
		return ask, f, "", err
	}
	once = query.Get("once")
	if err := issuing.CheckOnce(once); err != nil {
		return ask, f, "", err
	}
	if query.Has("count") {
		text := query.Get("count")
		if ask.Count, err = strconv.Atoi(text); err != nil || text != strconv.Itoa(ask.Count) { // nor +3 or 03
			return ask, f, "", failure.BadRequest("bad_count", "count %q is not a whole number from 1 to %d", text, a.front.Limits().MaxBatch())
		}
	}
	if f, err = parseForm(query.Get("format"), query.Get("numbers"), r.Header.Get("Accept")); f.given {
		ask.Fits = f.fits
	}
	return ask, f, once, err
}

// readable is a format beside the encodings.
const readable = "readable"

var decimal = decode.Format{Encoding: firn.Decimal, Compact: true}

// A form is how ids are written in an answer.
type form struct {
	decode.Format
	numbers bool
	text    bool
	given   bool // the request has format or numbers
}

func parseForm(format, numbers, accept string) (form, error) {
	if format == "" && numbers == "" && accept == "" {
		return form{Format: decimal}, nil
	}
	f := form{Format: decimal, given: format != "" || numbers != ""}
	switch strings.ToLower(format) {
	case "", "decimal":
	case readable:
		f.Readable = true
	default:
		e, err := decode.ParseEncoding(format, readable)
		if err != nil {
			return f, failure.BadRequest("bad_format", "%v", err)
		}
		f.Encoding, f.Compact = e, false
	}
	if numbers != "" {
		on, err := strconv.ParseBool(numbers)
		if err != nil {
			return f, failure.BadRequest("bad_request", "numbers=%q is neither true nor false", numbers)
		}
		f.numbers = on
	}
	if f.numbers && (f.Encoding != firn.Decimal || f.Readable) {
		return f, failure.BadRequest("bad_format", "numbers=true goes with decimal ids, not with format=%s", format)
	}
	f.text = wantsText(accept)
	return f, nil
}

// wantsText reports whether an Accept header names text/plain and not JSON.
func wantsText(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(part, ";")
		switch strings.TrimSpace(kind) {
		case "text/plain":
			return true
		case "application/json":
			return false
		}
	}
	return false
}

func (f form) contentType() []string {
	if f.text {
		return typeText
	}
	return typeJSON
}

// fits returns an error if the ids of a namespace cannot be written in the form.
func (f form) fits(ns *issuing.Namespace) error { return ns.CheckForm(f.Readable) }

// body writes the whole answer before anything is sent, so that a failure is an error and not
// half an answer.
func (f form) body(b []byte, ns *issuing.Namespace, made *issuing.Batch) ([]byte, error) {
	namespace := ns.Name()
	if !ns.Numeric() {
		return f.texts(b, namespace, made.Texts)
	}
	var layout firn.Layout // only a readable form needs it
	if f.Readable {
		layout, _ = ns.Layout()
	}
	before, between, after := `"`, `","`, "\"]}\n"
	switch {
	case f.text:
		before, between, after = "", "\n", "\n"
	case f.numbers:
		before, between, after = "", ",", "]}\n"
	}
	if !f.text {
		b = append(b, `{"namespace":"`...)
		b = append(b, namespace...) // its characters need no escaping
		b = append(b, `","ids":[`...)
	}
	b = append(b, before...)
	var err error
	for i, id := range made.IDs {
		if i > 0 {
			b = append(b, between...)
		}
		if b, err = f.Append(b, layout, id); err != nil {
			return nil, err
		}
	}
	return append(b, after...), nil
}

// texts writes ids that are texts already.
func (f form) texts(b []byte, namespace string, texts []string) ([]byte, error) {
	if f.text {
		for _, text := range texts {
			b = append(append(b, text...), '\n')
		}
		return b, nil
	}
	whole, err := json.Marshal(struct {
		Namespace string   `json:"namespace"`
		IDs       []string `json:"ids"`
	}{namespace, texts})
	return append(append(b, whole...), '\n'), err
}
