package issuing_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A holder that finds its slot gone closes the pool, as after a wipe.
func TestDoctorDoubtsAPoolThatItsHoldersHaveClosed(t *testing.T) {
	s := memstore.New(nil)
	l, err := lease.Open(t.Context(), lease.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for _, open := range []bool{true, false} {
		if !open {
			record, err := s.Get(t.Context(), "firn/default/pool")
			if err != nil {
				t.Fatal(err)
			}
			closed := bytes.Replace(record.Value, []byte(`"open":true`), []byte(`"open":false`), 1)
			if _, err := s.CompareAndSwap(t.Context(), "firn/default/pool", record.Revision, closed); err != nil {
				t.Fatal(err)
			}
		}
		found := issuing.ExaminePool(t.Context(), s, "default")
		if found[0].Verdict != store.Good || (len(found) == 1) != open || !open && (found[1].Verdict != store.Doubtful || !strings.Contains(found[1].Says, "may have forgotten")) {
			t.Errorf("open %v: %+v", open, found)
		}
	}
}
