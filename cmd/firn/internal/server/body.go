package server

import (
	"errors"
	"io"
	"net/http"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/rpc"
)

// maxDiscard is how much of a body that is too long is read all the same over HTTP/2.
const maxDiscard = 1 << 20

// bounded refuses requests that bring more than they may. Nothing that is asked of the
// server needs much; what is declared too long is refused before it is read. RPCs bound
// their messages themselves, and say so in the way of their protocol.
//
// It also refuses Range. HTTP lets a server ignore it, but a client that resumes an interrupted
// download, as wget does by itself, then joins two answers, often in the middle of an id.
func bounded(front *issuing.Front, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		switch {
		case rpc.Owns(r.URL.Path):
		case r.Header["Range"] != nil:
			err = failure.BadRequest("bad_request", "Range is not supported: each request issues new ids, so an interrupted download cannot be resumed; request it again, without Range")
		case r.ContentLength != 0:
			err = admit(w, r, int64(front.MaxBody()))
		}
		if err != nil {
			httpapi.Fail(w, front.Refuse(err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit returns an error if the body of a request is longer than the limit. One whose
// length is not declared has to be read for that, as far as the limit; and over HTTP/2
// all are, since an answer before the end of the body resets the stream, at which usual
// clients forget the answer that they have. The body that somebody may want is a form:
// it is in the request from then on. The time-out of reading bounds all of it.
func admit(w http.ResponseWriter, r *http.Request, limit int64) error {
	whole := r.Body
	if r.ContentLength > limit {
		return tooLong(w, r, whole, failure.New(http.StatusRequestEntityTooLarge, "body_too_large",
			"a request of %d bytes is above the limit of %d (limits.body)", r.ContentLength, limit))
	}
	r.Body = http.MaxBytesReader(w, whole, limit)
	if r.ContentLength > 0 && r.ProtoMajor < 2 {
		return nil
	}
	_ = r.ParseForm() // what is no form is none; that it cannot be read the next line finds too
	_, err := io.Copy(io.Discard, r.Body)
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return tooLong(w, r, whole, failure.New(http.StatusRequestEntityTooLarge, "body_too_large",
			"the request is above the limit of %d bytes (limits.body)", limit))
	case err != nil:
		return failure.BadRequest("bad_request", "the body of the request cannot be read: %v", err)
	}
	return nil
}

// tooLong has the client hear why its request is refused, and returns that. HTTP/1 ends the
// connection. In HTTP/2 that would end the client's other requests, so the rest of the
// body is read instead, if there is not too much of it.
func tooLong(w http.ResponseWriter, r *http.Request, rest io.Reader, why *failure.Failure) error {
	switch {
	case r.ProtoMajor < 2:
		w.Header().Set("Connection", "close")
	case r.ContentLength <= maxDiscard && r.Header.Get("Expect") == "": // who expects to be told to go on sends nothing before
		_, _ = io.CopyN(io.Discard, rest, maxDiscard) // a client that has gone needs no answer
	}
	return why
}
