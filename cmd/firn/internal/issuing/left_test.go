package issuing_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

func TestWhatACounterHasLeftIsMeasured(t *testing.T) {
	in2030(t, func(t *testing.T) {
		t.Setenv("KEYS", "1:000102030405060708090a0b0c0d0e0f\n")
		registry := prometheus.NewRegistry()
		s := opened(t, memstore.New(nil), `namespaces:
  orders: {}
  endless: {kind: segment}
  items: {kind: segment, min_step: 10, max_step: 10, veil: {key_env: KEYS, bits: 20}}
  odd: {kind: segment, min_step: 10, max_step: 10, stride: 2, offset: 1, veil: {key_env: KEYS, bits: 20}}
  txn: {kind: sequence, veil: {key_env: KEYS, bits: 24, version_bits: 2}}
  bills: {kind: number, template: 'B{n:4}', from: 9001}
  days: {kind: number, template: 'D{yyyyMMdd}{n:3}'}
  unused: {kind: number, template: 'U{n:3}'}
`, func(cfg *issuing.Config) { cfg.Registry = registry })
		f := s.Front(issuing.HTTP)
		caller := local(t, f)
		for _, name := range []string{"orders", "endless", "items", "odd", "txn", "bills", "days"} {
			var b issuing.Batch
			if err := take(t, f, caller, name, 100, &b); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			b.Release()
		}
		time.Sleep(time.Second) // fetches end
		check := func(want map[string]float64) {
			t.Helper()
			left, part := measured(t, registry, "firn_namespace_left"), measured(t, registry, "firn_namespace_left_ratio")
			for label, n := range want {
				if left[label] != n {
					t.Errorf("%s: %v left, want %v", label, left[label], n)
				}
			}
			if len(left) != len(want) {
				t.Errorf("%v, want %v", left, want)
			}
			if r := part["bills"]; len(part) != len(left) || math.Abs(r-899./9999) > 1e-9 {
				t.Errorf("parts: %v", part)
			}
		}
		const all = 1<<20 - 1
		check(map[string]float64{"items": all - 100, "odd": all/2 + 1 - 100, "txn": 4*all + 3 - 100, "bills": 899, "daysday": 899})
		time.Sleep(24 * time.Hour)
		check(map[string]float64{"items": all - 100, "odd": all/2 + 1 - 100, "txn": 4*all + 3 - 100, "bills": 899, "daysday": 999})

		end := measured(t, registry, "firn_lease_layout_end_timestamp_seconds")["default"]
		if year := time.Unix(int64(end), 0).UTC().Year(); year < 2080 || year > 2110 {
			t.Errorf("the default layout ends in %d", year)
		}
	})
}

func TestDoctorDoubtsACounterOfWhichLittleIsLeft(t *testing.T) {
	t.Setenv("KEYS", "1:000102030405060708090a0b0c0d0e0f\n")
	for settings, want := range map[string]struct {
		verdict store.Verdict
		says    string
	}{
		"kind: segment": {store.Good, ""},
		"kind: sequence, from: 9000000000000000000":                                           {store.Good, "9000000000000000000"},
		"kind: number, template: 'B{n:5}', from: 90":                                          {store.Good, ""},
		"kind: number, template: 'B{n:5}', from: 99990":                                       {store.Doubtful, "B99990, and has 10 of 99,999 ids left"},
		"kind: number, template: 'B{yyyy}-{n:5}', from: 95002":                                {store.Doubtful, "-95002, and has 4,998 of 99,999 ids left for this year"},
		"kind: number, template: 'B{yyyy}-{n:5}', from: 95001":                                {store.Good, "-95001"},
		"kind: segment, from: 1048000, veil: {key_env: KEYS, bits: 20}":                       {store.Doubtful, "1048000, and has 576 of 1,048,575 ids left"},
		"kind: segment, from: 1048001, stride: 2, offset: 1, veil: {key_env: KEYS, bits: 20}": {store.Doubtful, "1048001, and has 288 of 524,287 ids left"},
		"kind: sequence, from: 1048000, veil: {key_env: KEYS, bits: 20}":                      {store.Doubtful, "1048000, and has 576 of 1,048,575 ids left"},
	} {
		found := issuing.Examine(t.Context(), memstore.New(nil), config(t, "namespaces: {orders: {"+settings+"}}"))
		if len(found) != 1 || found[0].Verdict != want.verdict || !strings.HasSuffix(found[0].Says, want.says) || (found[0].Advice != "") != (want.verdict == store.Doubtful) {
			t.Errorf("%s: %+v", settings, found)
		}
	}
}
