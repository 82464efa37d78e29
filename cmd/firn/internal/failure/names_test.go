package failure_test

import (
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

func TestAMisspeltNameFindsTheNamesNearToIt(t *testing.T) {
	names := []string{"uuid", "uuid4", "uuid7", "segment", "sequence", "up"}
	for name, want := range map[string]string{
		"segmnt": ": did you mean segment?",
		"SEQ":    ": did you mean sequence?", // the beginning, in any case
		"uuid5":  ": did you mean uuid, uuid4 or uuid7?",
		"uuid44": ": did you mean uuid4?", // the nearest one
		"roman":  "",
		"xy":     "", // two of two letters differ
		"":       "",
	} {
		if got := failure.DidYouMean(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestTheDistanceCountsChangedCharacters(t *testing.T) {
	for _, d := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"STOR", "STORE", 1}, {"é", "e", 1}, {"ab", "ba", 1}, {"STROE", "STORE", 1}, {"ca", "abc", 3}} {
		if got := failure.Distance(d.a, d.b); got != d.want {
			t.Errorf("%q and %q: %d, want %d", d.a, d.b, got, d.want)
		}
	}
}
