package issuing_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/lease"
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
