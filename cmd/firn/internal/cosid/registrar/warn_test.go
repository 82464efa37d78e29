package registrar_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/cosid/registrar"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/store/memstore"
)

// A client may take and return numbers as fast as it sends requests.
func TestRequestsWriteOneLineOfTheLogInASecond(t *testing.T) {
	var out bytes.Buffer
	clock := firntest.NewClock(start)
	r := registrar.New(registrar.Config{Store: memstore.New(nil), Time: clock, Log: slog.New(slog.NewTextHandler(&out, nil))})
	d := desk{r, t}
	for range 100 {
		d.gives(instance("a"), 5, fiveMinutes, 0)
		if err := r.Revert(ctx, instance("a")); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() > 0 {
		t.Errorf("assigned and returned: %s", out.String())
	}
	for i := range 32 {
		d.gives(instance(fmt.Sprint("silent", i)), 5, fiveMinutes, i)
	}
	clock.Pass(6 * time.Minute)
	for i := range 31 {
		if _, err := r.Distribute(ctx, instance(fmt.Sprint("next", i)), 5, fiveMinutes); err != nil {
			t.Fatal(err)
		}
	}
	clock.Pass(time.Second)
	if _, err := r.Distribute(ctx, instance("last"), 5, fiveMinutes); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], "taken from a silent instance") || !strings.HasSuffix(lines[1], "omitted=30") {
		t.Errorf("%d lines: %s", len(lines), out.String())
	}
}
