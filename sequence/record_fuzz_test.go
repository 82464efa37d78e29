package sequence

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// FuzzRecord reads what may stand in a store: a record with a number that is an
// id, or a clear error.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		`{"last":"1042","by":"9f86d081884c7d65","write":17,"at":"2026-11-21T09:00:00Z"}`,
		`{"last":"9223372036854775807"}`, `{"last":"9223372036854775808"}`, `{"last":"-1"}`, `{"last":"+1"}`, `{"last":1}`, `{}`, ``, `null`,
		`{"kind":"segment","next":"7","stride":1}`, `{"kind":"sequence","form":"veil","keys":{"0":"ab"},"last":"7"}`,
		`{"last":"1","last":"2"}`, `{"LAST":"3"}`, `{"last":"1"}{"last":"2"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		last, by, use, err := decode("txn", store.Entry{Key: "firn/counter:txn", Value: value, Revision: 1}, &register.Use{Kind: kind})
		if err != nil {
			if !errors.Is(err, store.ErrTaken) && (!errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), "firn/counter:txn")) || last != 0 || by != "" {
				t.Fatalf("%q: %d, %q, %v", value, last, by, err)
			}
			return
		}
		if last < 0 || firn.ID(last) > firn.MaxID {
			t.Fatalf("%q: %d is no id", value, last)
		}
		again, err := register.Encode(record{Use: *use, Last: strconv.FormatInt(last, 10), By: by})
		if err != nil {
			t.Fatal(err)
		}
		if other, who, same, err := decode("txn", store.Entry{Value: again}, use); other != last || who != by || same != use || err != nil {
			t.Fatalf("%q became %q: %d, %q, %v", value, again, other, who, err)
		}
	})
}

// FuzzShare divides the ids left among requests of any size: no request gets an id
// above the maximum, or an id of another request.
func FuzzShare(f *testing.F) {
	f.Add(int64(0), int64(10), int64(3), int64(8), int64(2), int64(0), int64(4))
	f.Add(int64(1<<63-3), int64(1<<63-1), int64(1), int64(1<<63-1), int64(1), int64(1<<63-1), int64(1<<63-1))
	f.Add(int64(1<<63-6), int64(1<<63-1), int64(1), int64(2), int64(10), int64(0), int64(10_000_000_000))
	f.Add(int64(20), int64(10), int64(1), int64(1), int64(1), int64(5), int64(1))
	f.Fuzz(func(t *testing.T, last, most, a, b, c, least, block int64) {
		if last < 0 || most < 1 || least < 0 || least > most || a < 1 || b < 1 || c < 1 || block < 1 {
			return // no request and no counter is like that
		}
		s := counter{start: 1, max: most}
		s.learn(last, 1)
		batch := []*request{{n: a}, {n: b, partly: true}, {least: least}, {n: c}, {n: c, block: block}}
		end := s.share(batch)
		at := last
		for _, r := range batch {
			at = max(at, r.least)
			if !r.fits || r.n == 0 {
				continue
			}
			if int64(r.first) != at+1 || r.got < 1 || r.got > r.n || !r.partly && r.got != r.n || int64(r.first) > most || r.got > most-at {
				t.Fatalf("%+v after %d, up to %d", r, at, most)
			}
			at += r.got
			if r.block > 0 && int64(r.first)/block != at/block {
				t.Fatalf("%+v is of two blocks", r)
			}
			if r.block == 0 && s.exhausted(r) { // the others may have moved it on to another block
				t.Fatalf("%+v was served and is exhausted", r)
			}
		}
		if end != at {
			t.Fatalf("the end is %d, not %d", end, at)
		}
	})
}
