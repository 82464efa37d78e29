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
	told := failure.Of(err)
	out := connect.NewError(codeOf(ctx, told), told)
	a.detail(out, &errdetails.ErrorInfo{Reason: told.Code, Domain: domain})
	if told.Retry > 0 {
		a.detail(out, &errdetails.RetryInfo{RetryDelay: durationpb.New(told.Retry)})
	}
	a.log.Debug("request failed", "protocol", "rpc", "code", out.Code().String(), "error", err)
	return out
}

func (a *API) detail(to *connect.Error, message proto.Message) {
	d, err := connect.NewErrorDetail(message)
	if err != nil { // a message that is not valid UTF-8, say: the error is told without
		a.log.Debug("an error is told without a detail", "error", err)
		return
	}
	to.AddDetail(d)
}

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
