package settings_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// namespaces returns a configuration with n namespaces.
func namespaces(n int, each string) []byte {
	var b strings.Builder
	b.WriteString("namespaces:\n")
	for i := range n {
		fmt.Fprintf(&b, "  n%d: %s\n", i, each)
	}
	return []byte(b.String())
}

// A server reads its file again when it changes, so a large file must not take its processor. Allocated bytes stand
// for the work: they do not depend on the machine.
func TestReadingAConfigurationIsLinear(t *testing.T) {
	work := func(n int, each string) uint64 {
		var before, after runtime.MemStats
		source := namespaces(n, each)
		runtime.ReadMemStats(&before)
		_, _ = settings.Parse("firn.yaml", source) // some have mistakes, on purpose
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, each := range []string{"{}", "{kind: segment}", "{kind: uuix}", "{kind: segment, minstep: 5}", "{worker: many}", "{worker: 5000}"} {
		few, many := work(100, each), work(1000, each)
		if many > 20*few {
			t.Errorf("%s: 100 namespaces took %d bytes, 1000 took %d", each, few, many)
		}
	}
}

func TestOnlyTheFirstMistakesOfAFileAreShown(t *testing.T) {
	for each, want := range map[string]string{
		"{kind: uuix}":                "line 2: namespaces.n0.kind: ",
		"{kind: segment, minstep: 5}": "line 2: namespaces.n0.minstep: ",
	} {
		_, err := settings.Parse("firn.yaml", namespaces(1000, each))
		if err == nil {
			t.Fatalf("%s: no mistake", each)
		}
		shown := strings.Split(err.Error(), "\n")
		if place := new(settings.PlaceError); len(shown) != 51 || !strings.Contains(shown[0], want) || !errors.As(err, &place) {
			t.Errorf("%s: %d lines, the first is %q", each, len(shown), shown[0])
		}
		if last := shown[len(shown)-1]; last != "configuration firn.yaml: there are 950 more mistakes: correct these first" {
			t.Errorf("%s: the last line is %q", each, last)
		}
	}
}
