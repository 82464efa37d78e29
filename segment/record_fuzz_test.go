package segment

import (
	"errors"
	"math"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// FuzzRecord reads what anybody may have put under the key of a name. Whatever
// is accepted is a counter from which a range follows, or the end of the ids.
func FuzzRecord(f *testing.F) {
	for _, value := range []string{
		`{"next":"1001","offset":0,"stride":1,"step":1000,"writer":"5ad1","write":1,"host":"h","pid":4711,"at":"2026-11-20T12:00:00Z"}`,
		`{"next":"9223372036854775808","stride":1}`, `{"next":"9223372036855824383","offset":1048575,"stride":1048576}`,
		`{"kind":"segment","form":"plain","next":"7","stride":1}`, `{"form":"veil","keys":{"0":"ab"},"next":"7","stride":1}`, `{"kind":"sequence","last":"7"}`,
		`{"next":"0","offset":0,"stride":7}`, `{"next":"","stride":1}`, `{"next":"+1","stride":1}`, `null`, `[]`, ``,
	} {
		f.Add([]byte(value), int64(-1), int64(1000))
	}
	f.Fuzz(func(t *testing.T, value []byte, above, step int64) {
		entry := store.Entry{Key: register.CounterKey("orders"), Value: value, Revision: 1}
		now, err := readCounter("orders", entry, &register.Use{Kind: kind})
		if err != nil {
			if !errors.Is(err, store.ErrForeign) && !errors.Is(err, store.ErrTaken) {
				t.Fatalf("%v does not match its kind", err)
			}
			return
		}
		cfg := Config{Store: nothing{}, Form: now.use.Form, Offset: now.Stripe.Offset, Stride: now.Stripe.Stride}
		if err := cfg.check(); err != nil {
			t.Fatalf("a stripe that no process can have: %v", err)
		}
		c := newCounters(&cfg)
		ask := Ask{Above: firn.ID(max(above, -1)), Step: min(max(step, 1), maxStep)}
		r, written, err := c.advance("orders", entry, false, ask)
		if errors.Is(err, ErrExhausted) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := r.check(); err != nil {
			t.Fatal(err)
		}
		if uint64(r.First) < now.Next || r.First <= ask.Above || r.First < 1 || r.Count > ask.Step || int64(r.First)%r.Stride != now.Stripe.Offset {
			t.Fatalf("%v of %+v, asked for %+v", r, now, ask)
		}
		entry.Value = written
		after, err := readCounter("orders", entry, &register.Use{Kind: kind})
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if after.Next != uint64(r.Last())+uint64(r.Stride) || after.Stripe != now.Stripe {
			t.Fatalf("%+v after %v", after, r)
		}
		if after.Next <= math.MaxInt64 {
			again, _, err := c.advance("orders", entry, false, Ask{Above: -1, Step: 1})
			if err != nil || again.First <= r.Last() {
				t.Fatalf("%v after %v, %v", again, r, err)
			}
		}
		again, _, err := c.advance("orders", entry, true, ask)
		if err != nil || again != r {
			t.Fatalf("%v instead of %v, which was lost: %v", again, r, err)
		}
	})
}

// nothing is a store that is never asked.
type nothing struct{ store.Store }
