package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

func TestNamesHave1To64LettersDigitsDotsDashesAndUnderscores(t *testing.T) {
	for _, name := range []string{"a", "Z", "0", ".", "-", "_", "orders-2026_v1.x", strings.Repeat("n", 64)} {
		if err := store.CheckName("pool", name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", strings.Repeat("n", 65), "a b", "a/b", "ä", "a\n", "\xff", "a:b", " a"} {
		if err := store.CheckName("pool", name); !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "1 to 64 letters") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
