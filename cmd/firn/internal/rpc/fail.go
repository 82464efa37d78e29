package rpc

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// domain is where the words of ErrorInfo are defined.
const domain = "firn"

// fail returns an error as a client is told it: with a code, with the word that all
// protocols have for it in an ErrorInfo, and with a RetryInfo if asking again makes sense.
// Front has counted it.
func (a *API) fail(ctx context.Context, err error) *connect.Error {
	out, lacks := told(ctx, err)
	if lacks != nil {
		a.log.Debug("an error is told without its details", "error", lacks)
	}
	a.log.Debug("request failed", "protocol", "rpc", "code", out.Code().String(), "error", err)
	return out
}

// told returns an error as a client is told it, and why it lacks details, if it does: they
// cannot have text that is not UTF-8.
func told(ctx context.Context, err error) (out *connect.Error, lacks error) {
	f := failure.Of(err)
	out = connect.NewError(codeOf(ctx, f), f)
	details := []proto.Message{&errdetails.ErrorInfo{Reason: f.Code, Domain: domain}}
	if f.Retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(f.Retry)})
	}
	for _, message := range details {
		d, err := connect.NewErrorDetail(message)
		if err != nil {
			lacks = errors.Join(lacks, err)
			continue
		}
		out.AddDetail(d)
	}
	return out, lacks
}

// Fail answers a request that is refused before it comes to a method, in the way of its
// protocol. It reports whether that is one of ours; if not, nothing is answered.
func Fail(w http.ResponseWriter, r *http.Request, err error) bool {
	if !Owns(r.URL.Path) || !errorWriter.IsSupported(r) {
		return false
	}
	out, _ := told(r.Context(), err) // without details it says enough
	_ = errorWriter.Write(w, r, out) // a failed write means that the client has gone
	return true
}

var errorWriter = connect.NewErrorWriter()

// codeOf returns the code that has the meaning of a failure's HTTP status.
func codeOf(ctx context.Context, f *failure.Failure) connect.Code {
	// Whose time was up makes the difference between a client that asked for too
	// little of it and a store that is away.
	if f.Code == "timed_out" && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return connect.CodeDeadlineExceeded
	}
	switch f.Status {
	case http.StatusUnauthorized:
		return connect.CodeUnauthenticated
	case http.StatusForbidden:
		return connect.CodePermissionDenied
	case http.StatusNotFound:
		return connect.CodeNotFound
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return connect.CodeResourceExhausted
	case http.StatusServiceUnavailable:
		return connect.CodeUnavailable
	case http.StatusGatewayTimeout:
		return connect.CodeDeadlineExceeded
	case statusGone:
		return connect.CodeCanceled
	}
	if f.Status < http.StatusInternalServerError {
		return connect.CodeInvalidArgument
	}
	return connect.CodeInternal
}

// statusGone is that of a client that did not wait.
const statusGone = 499
