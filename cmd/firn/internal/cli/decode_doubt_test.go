package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

func TestPresetsAreGuessedForAnImplausibleTime(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		what string
		id   firn.ID
		want []string
	}{
		{"an id of firn", 249681087299011313, nil},
		{"an id of bwmarrin, far in the future of firn", 1856200000000000000, []string{"twitter", "classic", "instagram", "uid-generator"}},
		{"an id of js53, at the beginning of firn", 245000000000123, []string{"js53"}},
		{"a small number", 12345, nil},
		{"an id of firn an hour from now", firn.ID(now.Add(time.Hour).Sub(firn.DefaultLayout().Epoch()).Milliseconds() << 22), nil},
	} {
		var got []string
		for _, other := range doubtful(test.id, firn.DefaultLayout(), now).Others {
			got = append(got, other.Layout)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.what, got, test.want)
		}
	}
}
