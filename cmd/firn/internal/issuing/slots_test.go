package issuing_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

func TestASlotIsIdleOnceTheTickOfItsFenceHasEnded(t *testing.T) {
	until := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		slot lease.Slot
		now  time.Time
		want string
	}{
		{lease.Slot{Until: until}, until.Add(-1), issuing.SlotHeld},
		{lease.Slot{Until: until}, until, issuing.SlotExpired},
		{lease.Slot{Until: until, Free: true}, until.Add(-1), issuing.SlotReturned},
		{lease.Slot{Until: until, Free: true}, until, issuing.SlotReturned},
		{lease.Slot{Until: until, Free: true, Taken: true}, until, issuing.SlotReleased},
		{lease.Slot{Until: until, At: until}, until.Add(-time.Minute), issuing.SlotAhead},
		{lease.Slot{Until: until, At: until}, until.Add(-30 * time.Second), issuing.SlotHeld},
	} {
		if got := issuing.DescribeSlot(test.slot, 40*time.Second, test.now); got.State != test.want || !got.Until.Equal(until) {
			t.Errorf("%+v at %v: %+v, not %s", test.slot, test.now, got, test.want)
		}
	}
}

// A damaged record may have any fence, and JSON has no time after the year 9999.
func TestASlotWithAFenceAfterTheYear9999IsShown(t *testing.T) {
	slot := issuing.DescribeSlot(lease.Slot{Fence: 1 << 62, Until: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, 0, time.Now())
	if got, err := json.Marshal(slot); err != nil || !strings.Contains(string(got), `"state":"held","fence":"4611686018427387904","since"`) {
		t.Errorf("%s, %v", got, err)
	}
}

// A process that the wrong datacenter was given, or none, makes ids that another system may make, too.
func TestAServerThatIsTheFirstOfItsDatacenterSaysSo(t *testing.T) {
	st := memstore.New(nil)
	for start, c := range []struct {
		datacenter int
		warns      bool
	}{{1, false}, {1, false}, {2, true}, {2, false}} {
		var log strings.Builder
		s := opened(t, st, fmt.Sprintf("namespaces: {a: {pool: shop, layout: 41/2/8/12, datacenter: %d}}", c.datacenter), func(cfg *issuing.Config) {
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		if got := strings.Contains(log.String(), "shop: this configuration has datacenter 2, and all workers of the pool so far have another, such as 1"); got != c.warns {
			t.Errorf("start %d: %s", start, log.String())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
