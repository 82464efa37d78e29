package migrate

import (
	"math"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/segment"
)

// firstID is the first id that TinyId's client issues of a range.
func (s tinySegment) firstID() int64 {
	if s.current%s.delta == s.remainder {
		return s.current + s.delta
	}
	id := s.current
	for range s.delta + 1 {
		if id++; id%s.delta == s.remainder {
			return id
		}
	}
	return -1
}

func TestAClientIssuesEveryIDOfARange(t *testing.T) {
	for _, r := range []segment.Range{
		{First: 1, Count: 1, Stride: 1}, {First: 1, Count: 1000, Stride: 1}, {First: 77, Count: 3, Stride: 1},
		{First: 1, Count: 50, Stride: 2}, {First: 2, Count: 50, Stride: 2}, {First: 7, Count: 9, Stride: 8}, {First: 8, Count: 9, Stride: 8},
		{First: 1_048_575, Count: 1 << 20, Stride: 1 << 20}, {First: firn.MaxID - 9, Count: 10, Stride: 1},
	} {
		s := newSegment(r)
		if s.firstID() != int64(r.First) || s.max != int64(r.Last()) || s.delta != r.Stride {
			t.Errorf("%v: a client issues %d to %d by %d", r, s.firstID(), s.max, s.delta)
		}
		if s.current < 0 || s.loading < s.current || s.loading > s.max {
			t.Errorf("%v: current %d, loading %d, max %d", r, s.current, s.loading, s.max)
		}
	}
	// The original's computation overflows here, see newSegment.
	if s := newSegment(segment.Range{First: 1, Count: math.MaxInt32, Stride: 1}); s.loading != math.MaxInt32/5 {
		t.Errorf("loading at %d", s.loading)
	}
}

func TestFailuresAreCodes5And6(t *testing.T) {
	for _, c := range []struct {
		failure *failure.Failure
		want    string
	}{
		{failure.New(401, "unauthorized", "x"), `{"data":null,"code":5,"message":"token is error"}`},
		{failure.New(403, "forbidden", "x"), `{"data":null,"code":5,"message":"token is error"}`},
		{failure.New(429, "rate_limited", `"a" > b & c`), `{"data":null,"code":6,"message":"\"a\" > b & c"}`},
		{failure.New(503, "store_unavailable", "away"), `{"data":null,"code":6,"message":"away"}`},
	} {
		if got := string(appendFailure(nil, tinyidRequest{}, "t", c.failure)); got != c.want {
			t.Errorf("%s: %s", c.failure.Code, got)
		}
		if got := appendFailure(nil, tinyidRequest{simple: true}, "t", c.failure); len(got) > 0 {
			t.Errorf("%s: %s, want an empty answer", c.failure.Code, got)
		}
	}
}
