package firn_test

import (
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/faketime"
)

// noon is well within the default layout.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newFakeTime() *faketime.Time { return faketime.New(noon) }

func mustLayout(text string) firn.Layout {
	l, err := firn.ParseLayout(text)
	if err != nil {
		panic(err)
	}
	return l
}
