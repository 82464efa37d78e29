package firntest_test

import (
	"context"
	"time"

	"github.com/firn-id/firn/firntest"
)

// A Clock has the verbs of docs/decisions/0011.
var _ interface {
	Pass(d time.Duration)
	Step(d time.Duration)
	Set(wall time.Time)
	Rate(rate float64)
	Idle(ctx context.Context, d time.Duration) error
} = (*firntest.Clock)(nil)
