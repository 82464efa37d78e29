package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/rpc"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// maxDiscard bounds how many bytes of an over-long body are read and discarded over HTTP/2.
const maxDiscard = 1 << 20

// bounded refuses requests whose body is above the limit; no request needs a large one. A
// body with too large a Content-Length is refused unread. RPCs bound their messages
// themselves and answer in their own protocol.
//
// It also refuses Range. HTTP lets a server ignore it, but a client that resumes an interrupted
// download, as wget does by itself, then joins two answers, often in the middle of an id.
//
// TakesForm reports which requests have parameters in their body.
func bounded(front *issuing.Front, takesForm func(*http.Request) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if r.ContentLength != 0 {
			body := &chargedBody{ReadCloser: r.Body, client: share.In(r.Context())}
			defer body.free()
			// In a copy: net/http looks for its own Body in its own request, so as to close without losing the answer.
			r = r.WithContext(r.Context())
			r.Body = body
		}
		switch {
		case rpc.Owns(r.URL.Path):
		case r.Header["Range"] != nil:
			err = failure.BadRequest("bad_request", "Range is not supported: each request issues new ids, so an interrupted download cannot be resumed; request it again, without Range")
		case r.ContentLength != 0:
			err = admit(w, r, int64(front.Limits().MaxBody()), takesForm(r))
		}
		if err != nil {
			httpapi.Fail(w, front.Refuse(err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit returns an error if the body of a request is longer than the limit. A body without
// a Content-Length must be read up to the limit to know that. Over HTTP/2 every body is
// read: an answer before the end of the body resets the stream, and common clients then
// drop the answer. The only body that a handler uses is a form, which admit keeps as it came.
// The read timeout bounds all of this.
func admit(w http.ResponseWriter, r *http.Request, limit int64, form bool) error {
	whole := r.Body
	if r.ContentLength > limit {
		return tooLong(w, r, whole, failure.New(http.StatusRequestEntityTooLarge, "body_too_large",
			"a request of %d bytes is above the limit of %d (limits.body)", r.ContentLength, limit))
	}
	r.Body = http.MaxBytesReader(w, whole, limit)
	if r.ContentLength > 0 && r.ProtoMajor < 2 && !form {
		return nil
	}
	kept := io.Discard
	if form {
		text := new(bytes.Buffer)
		kept = text
		defer func() { r.Body = io.NopCloser(text) }()
	}
	_, err := io.Copy(kept, r.Body)
	_, long := errors.AsType[*http.MaxBytesError](err)
	full, isFull := errors.AsType[*failure.Failure](err)
	switch {
	case long:
		return tooLong(w, r, whole, failure.New(http.StatusRequestEntityTooLarge, "body_too_large",
			"the request is above the limit of %d bytes (limits.body)", limit))
	case isFull:
		return full
	case err != nil:
		return failure.BadRequest("bad_request", "the body of the request cannot be read: %v", err)
	}
	return nil
}

// tooLong makes sure that the client receives why, and returns it. Over HTTP/1 the
// connection closes after the answer. Over HTTP/2 that would end the client's other
// requests, so tooLong reads the rest of the body instead, if it is not too long.
func tooLong(w http.ResponseWriter, r *http.Request, rest io.Reader, why *failure.Failure) error {
	switch {
	case r.ProtoMajor < 2:
		w.Header().Set("Connection", "close")
	case r.ContentLength <= maxDiscard && r.Header.Get("Expect") == "": // with Expect, a client sends no body before 100 Continue
		_, _ = io.CopyN(io.Discard, rest, maxDiscard) // a client that has gone needs no answer
	}
	return why
}

// A chargedBody charges what is read of a body to its client until the request ends: forms and messages are kept whole,
// and each of thousands of requests may leave out its last byte.
type chargedBody struct {
	io.ReadCloser
	client *share.Client
	held   int
}

func (b *chargedBody) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	if n > 0 && err == nil { // the rest is still missing
		if !b.client.Take(share.Memory, n) {
			return 0, b.client.Refusal(share.Memory)
		}
		b.held += n
	}
	return n, err
}

func (b *chargedBody) free() { b.client.Give(share.Memory, b.held) }
