package issuing_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

// Neither a start nor a reload takes a setting that a store which ends with the process cannot keep.
func TestAForgetfulStoreTakesNoSettingThatNeedsMemory(t *testing.T) {
	forgetful := func(c *issuing.Config) { c.Forgetful = true }
	for text, want := range map[string]string{
		"namespaces: {txn: {kind: sequence, must_exist: true}}":       "namespaces.txn.must_exist: it needs a store that keeps counters",
		"namespaces: {ids: {clock: virtual, clock_from: 2026-01-01}}": "namespaces.ids.clock_from: it needs a store that keeps fences",
	} {
		cfg := issuing.Config{Settings: config(t, text), Store: memstore.New(nil), Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()}
		forgetful(&cfg)
		if _, err := issuing.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("start: %v", err)
		}
		s := opened(t, memstore.New(nil), "namespaces: {txn: {kind: sequence}}", forgetful)
		if err := s.Apply(t.Context(), config(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("reload: %v", err)
		}
	}
}
