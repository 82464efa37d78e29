package rpc

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// domain is the domain of the reasons in ErrorInfo.
const domain = "firn"

// An answered is an error as clients get it: with a code, with the reason that all protocols share in an ErrorInfo, and
// with a RetryInfo if a retry makes sense. Front has counted it.
type answered struct {
	code    connect.Code // the same numbers as gRPC's
	failure *failure.Failure
	details []proto.Message
}

func answeredOf(ctx context.Context, err error) answered {
	f := failure.Of(err)
	out := answered{codeOf(ctx, f), f, []proto.Message{&errdetails.ErrorInfo{Reason: f.Code, Domain: domain}}}
	if f.Retry > 0 {
		out.details = append(out.details, &errdetails.RetryInfo{RetryDelay: durationpb.New(f.Retry)})
	}
	return out
}

// logFailed logs why a request failed. Lacks says why details are missing: they cannot contain invalid UTF-8.
func logFailed(log *slog.Logger, code connect.Code, lacks, err error) {
	if lacks != nil {
		log.Debug("an error is sent without details", "error", lacks)
	}
	log.Debug("request failed", "protocol", "rpc", "code", code.String(), "error", err)
}

// fail returns the error for a client of connect.
func (a *API) fail(ctx context.Context, err error) *connect.Error {
	out, lacks := clientError(ctx, err)
	logFailed(a.log, out.Code(), lacks, err)
	return out
}

func clientError(ctx context.Context, err error) (out *connect.Error, lacks error) {
	all := answeredOf(ctx, err)
	out = connect.NewError(all.code, all.failure)
	for _, message := range all.details {
		d, err := connect.NewErrorDetail(message)
		if err != nil {
			lacks = errors.Join(lacks, err)
			continue
		}
		out.AddDetail(d)
	}
	return out, lacks
}

// Fail answers a request that is refused before it reaches a method, in its own protocol. It
// reports whether the protocol is one of this package; if not, it writes nothing.
func Fail(w http.ResponseWriter, r *http.Request, err error) bool {
	if !Owns(r.URL.Path) || !errorWriter.IsSupported(r) {
		return false
	}
	out, _ := clientError(r.Context(), err) // the error is useful without details too
	_ = errorWriter.Write(w, r, out)        // a failed write means that the client has gone
	return true
}

var errorWriter = connect.NewErrorWriter()

// codesOf has the code of each status that has one of its own.
var codesOf = map[int]connect.Code{
	http.StatusUnauthorized:          connect.CodeUnauthenticated,
	http.StatusForbidden:             connect.CodePermissionDenied,
	http.StatusNotFound:              connect.CodeNotFound,
	http.StatusGone:                  connect.CodeFailedPrecondition,
	http.StatusRequestEntityTooLarge: connect.CodeResourceExhausted,
	http.StatusTooManyRequests:       connect.CodeResourceExhausted,
	http.StatusServiceUnavailable:    connect.CodeUnavailable,
	failure.StatusGone:               connect.CodeCanceled,
}

// codeOf returns the code that corresponds to a failure's HTTP status.
func codeOf(ctx context.Context, f *failure.Failure) connect.Code {
	// If the client's own deadline has passed, it allowed too little time. Otherwise the server's
	// timeout has passed: the store is unavailable.
	if failure.GaveUp(f) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return connect.CodeDeadlineExceeded
	}
	if code, ok := codesOf[f.Status]; ok {
		return code
	}
	if f.Status < http.StatusInternalServerError {
		return connect.CodeInvalidArgument
	}
	return connect.CodeInternal
}
