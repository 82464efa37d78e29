package migrate

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/segment"
)

const (
	begin = `{"data":`
	end   = `,"code":200,"message":""}`
)

// appendIDs appends an answer with ids.
func appendIDs(b []byte, ids []firn.ID, simple bool) []byte {
	if !simple {
		b = append(append(b, begin...), '[')
	}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	if !simple {
		b = append(append(b, ']'), end...)
	}
	return b
}

// A tinySegment is a range in the form of TinyId's client: the ids above current up to max
// that leave the remainder when divided by delta. At loading the client requests the next range.
type tinySegment struct{ max, loading, current, delta, remainder int64 }

// newSegment describes r, which is not empty; ids begin at 1.
//
// The client begins at current + delta if current leaves the remainder, else at the next id
// above current that does. So current is the id before the first one. If that would be
// negative, current is 0, from which the client finds the first id.
func newSegment(r segment.Range) tinySegment {
	s := tinySegment{
		max: int64(r.Last()), current: max(int64(r.First)-r.Stride, 0),
		delta: r.Stride, remainder: int64(r.First) % r.Stride,
	}
	// The client loads after a fifth of the range, as in the original. That computes it in 32
	// bits, which overflow for ranges above 107,374,182 ids.
	s.loading = s.current + (s.max-s.current)/5
	return s
}

func (s tinySegment) append(b []byte, simple bool) []byte {
	if simple {
		return fmt.Appendf(b, "%d,%d,%d,%d,%d", s.current, s.loading, s.max, s.delta, s.remainder)
	}
	return fmt.Appendf(b, `%s{"maxId":%d,"loadingId":%d,"currentId":%d,"delta":%d,"remainder":%d}%s`,
		begin, s.max, s.loading, s.current, s.delta, s.remainder, end)
}

// TinyId's codes of failures.
const (
	tokenError  = 5
	systemError = 6
)

// appendFailure appends the answer of a failure; it is empty for simple requests.
func appendFailure(b []byte, asked tinyidRequest, bizType string, f *failure.Failure) []byte {
	if asked.simple {
		return b
	}
	code, message := systemError, f.Message
	switch {
	case f.Status == http.StatusUnauthorized, f.Status == http.StatusForbidden:
		code, message = tokenError, "token is error"
	case f.Code == "unknown_namespace":
		message = "can not find biztype:" + bizType
		if asked.ids {
			message = "error query segmentId: " + message
		}
	}
	return append(b, springEncode(struct {
		Data    *struct{} `json:"data"`
		Code    int       `json:"code"`
		Message string    `json:"message"`
	}{nil, code, message})...)
}
