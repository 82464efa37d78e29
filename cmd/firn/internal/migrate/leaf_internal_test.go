package migrate

import (
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

func TestFailuresHaveLeafsNumbers(t *testing.T) {
	for code, want := range map[string]struct{ segment, snowflake int }{
		"unknown_namespace": {-2, -2}, "bad_request": {-2, -2}, "wrong_kind": {-2, -2},
		"not_ready": {-1, -1}, "shutting_down": {-1, -1},
		"store_unavailable": {-3, -1}, "timed_out": {-3, -1}, "exhausted": {-3, -1}, "internal": {-3, -1},
		"fence_reached": {-3, -1}, "clock_back": {-3, -3}, "canceled": {-3, -2},
	} {
		f := failure.New(503, code, "x")
		if got := segmentMode.code(f); got != want.segment {
			t.Errorf("segment, %s: %d", code, got)
		}
		if got := snowflakeMode.code(f); got != want.snowflake {
			t.Errorf("snowflake, %s: %d", code, got)
		}
	}
}
