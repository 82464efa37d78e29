package issuing_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store/memstore"
)

func TestACounterThatIsNewInItsStoreIsAnnouncedOnce(t *testing.T) {
	const text = `namespaces:
  lines: {kind: segment}
  txn: {kind: sequence, from: 60000}
  bills: {kind: number, template: "INV{yyyy}-{n:5}"}
`
	cfg, err := settings.Parse("firn.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := memstore.New(nil)
	examined := func() (said []string) {
		for _, f := range issuing.Examine(t.Context(), s, cfg) {
			said = append(said, f.Says)
		}
		return said
	}
	const begins = " is new in this store: it begins at "
	if got, want := strings.Join(examined(), "\n"), "bills"+begins+"INV"+time.Now().UTC().Format("2006")+"-00001\nlines"+begins+"1\ntxn"+begins+"60000"; got != want {
		t.Errorf("of an empty store doctor says\n%s\nwant\n%s", got, want)
	}
	for start := range 2 {
		var log strings.Builder
		service, err := issuing.Open(t.Context(), issuing.Config{Settings: cfg, Store: s, Log: slog.New(slog.NewTextHandler(&log, nil)), Registry: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		f := service.Front(issuing.HTTP)
		for range 2 {
			for _, name := range []string{"bills", "lines", "txn"} {
				var b issuing.Batch
				if err := take(t, f, local(t, f), name, 1, &b); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := service.Close(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"bills", "lines", "txn"} {
			said := strings.Count(log.String(), ` is new in this store" namespace=`+name+" ")
			if want := 1 - start; said != want {
				t.Errorf("start %d: announced %s %d times, want %d:\n%s", start, name, said, want, log.String())
			}
		}
	}
	if got, want := strings.Join(examined(), "\n"), "bills goes on at INV"+time.Now().UTC().Format("2006")+"-00005\nlines goes on at 5\ntxn goes on at 60004"; got != want {
		t.Errorf("after four ids each doctor says\n%s\nwant\n%s", got, want)
	}
}
