package access_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/firn-id/firn/cmd/firn/internal/access"
)

func newLog(t *testing.T) (l *access.Audit, pass func(time.Duration), lines func() []string) {
	t.Helper()
	var out bytes.Buffer
	var now time.Duration
	to := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	l = access.NewAudit(to, func() time.Duration { return now })
	return l, func(d time.Duration) { now += d }, func() []string {
		text := strings.TrimSpace(out.String())
		out.Reset()
		if text == "" {
			return nil
		}
		return strings.Split(text, "\n")
	}
}

func TestARepeatedDenialIsWrittenOnceAndCounted(t *testing.T) {
	l, pass, lines := newLog(t)
	for port := range 1000 {
		l.Denied("shop", fmt.Sprintf("10.0.0.7:%d", port), "namespace users", "forbidden")
	}
	const first = `level=WARN msg=denied who=shop from=10.0.0.7 what="namespace users" why=forbidden`
	if got := lines(); len(got) != 1 || got[0] != first {
		t.Errorf("%q", got)
	}
	pass(9 * time.Second)
	l.Flush()
	if got := lines(); got != nil {
		t.Errorf("too early: %q", got)
	}
	pass(time.Second)
	l.Flush()
	if got := lines(); len(got) != 1 || got[0] != first+" repeated=999" {
		t.Errorf("%q", got)
	}
	l.Denied("shop", "10.0.0.7:1", "namespace users", "forbidden")
	l.Denied("shop", "10.0.0.7:2", "namespace users", "forbidden")
	l.Close()
	if got := lines(); len(got) != 2 || got[1] != first+" repeated=1" {
		t.Errorf("%q", got)
	}
}

func TestAFloodFromManyAddressesIsBounded(t *testing.T) {
	l, pass, lines := newLog(t)
	for i := range 100_000 {
		l.Denied("", fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), "token", "unknown")
	}
	pass(10 * time.Second)
	l.Flush()
	got := lines()
	if len(got) != 201 || got[200] != "level=WARN msg=omitted records=99800 from=[]" {
		t.Errorf("%d records, the last %q", len(got), got[len(got)-1])
	}
}

func TestOneAddressCannotHideTheDenialsOfOthers(t *testing.T) {
	l, _, lines := newLog(t)
	for i := range 1000 {
		l.Denied("anonymous", "10.0.0.7:1", fmt.Sprintf("namespace n%d", i), "forbidden")
	}
	lines()
	l.Denied("", "10.0.0.8:1", "http", "unknown")
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "10.0.0.8") {
		t.Errorf("%q", got)
	}
	l.Close()
	if got := lines(); len(got) != 1 || got[0] != "level=WARN msg=omitted records=950 from=[10.0.0.7]" {
		t.Errorf("%q", got)
	}
}

// Addresses within one /64 cost nothing.
func TestOneIPv6NetworkCannotHideTheDenialsOfOthers(t *testing.T) {
	l, _, lines := newLog(t)
	for i := range 1000 {
		l.Denied("", fmt.Sprintf("[fd00:1::%x]:1", i), "http", "unauthorized")
	}
	if got := lines(); len(got) != 50 || !strings.Contains(got[49], "from=fd00:1::31 ") {
		t.Errorf("%d records: %q", len(got), got)
	}
	l.Denied("", "[fd00:2::1]:1", "http", "unknown")
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "from=fd00:2::1 ") {
		t.Errorf("%q", got)
	}
	l.Close()
	if got := lines(); len(got) != 1 || got[0] != "level=WARN msg=omitted records=950 from=[fd00:1::/64]" {
		t.Errorf("%q", got)
	}
}

func TestDenialsOfOneTokenDoNotHideAttemptsWithOthers(t *testing.T) {
	for _, c := range []struct{ flood, quiet string }{{"shop", ""}, {"", "shop"}} {
		l, _, lines := newLog(t)
		for i := range 400 {
			l.Denied(c.flood, "10.0.0.7:1", fmt.Sprintf("namespace n%d", i), "forbidden")
		}
		for i := range 400 { // from many addresses too
			l.Denied(c.flood, fmt.Sprintf("10.0.1.%d:1", i), "http", "forbidden")
		}
		if got := lines(); len(got) != 200 {
			t.Errorf("%d records of %q", len(got), c.flood)
		}
		for range 20 {
			l.Denied(c.quiet, "10.0.0.7:2", "resp", "the token is not known here")
		}
		l.Close()
		got := lines()
		const want = `from=10.0.0.7 what=resp why="the token is not known here"`
		if len(got) != 3 || !strings.HasSuffix(got[0], want) || !strings.HasSuffix(got[1], want+" repeated=19") ||
			!strings.HasPrefix(got[2], "level=WARN msg=omitted records=600 from=") || !strings.Contains(got[2], "10.0.0.7") {
			t.Errorf("%q", got)
		}
	}
}

func TestOmittedRecordsNameTheirMainAddresses(t *testing.T) {
	l, _, lines := newLog(t)
	for i := range 20_000 {
		l.Denied("", fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), "http", "unknown")
		for host := range 7 {
			if i%(host+1) == 0 {
				l.Denied("shop", fmt.Sprintf("192.0.2.%d:1", host), fmt.Sprintf("namespace n%d", i), "forbidden")
			}
		}
	}
	l.Close()
	got := lines()
	last := got[len(got)-1]
	if !strings.HasPrefix(last, "level=WARN msg=omitted ") || !strings.HasSuffix(last, ` from="[192.0.2.0 192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4]"`) {
		t.Errorf("%q", last)
	}
}

func TestALongNameDoesNotFillTheLog(t *testing.T) {
	l, _, lines := newLog(t)
	name := strings.Repeat("é", 30_000)
	l.Denied("shop", "10.0.0.7:1", "namespace "+name, "token shop may not use "+name)
	if got := lines(); len(got) != 1 || len(got[0]) > 700 || !strings.Contains(got[0], "namespace éé") || !utf8.ValidString(got[0]) || strings.Contains(got[0], `\x`) {
		t.Errorf("%d bytes: %.300q", len(got[0]), got)
	}
}

func TestEachAdministrativeActionIsRecorded(t *testing.T) {
	l, _, lines := newLog(t)
	l.Done("reload", nil, "file", "firn.yaml")
	l.Done("reload", errors.New("line 3: no"))
	if got := lines(); len(got) != 2 || got[0] != "level=INFO msg=done what=reload outcome=ok file=firn.yaml" ||
		got[1] != `level=WARN msg=done what=reload outcome=failed why="line 3: no"` {
		t.Errorf("%q", got)
	}
}
