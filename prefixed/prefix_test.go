package prefixed_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/prefixed"
)

func mustNew(t testing.TB, text string) prefixed.Prefix {
	t.Helper()
	p, err := prefixed.New(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const classicID = firn.ID(1414362783486840832)

func TestAnIDIsThePrefixAnUnderscoreAndBase32(t *testing.T) {
	for prefix, want := range map[string]string{
		"ord": "ord_1786KEMYM8400", "a": "a_1786KEMYM8400", "7": "7_1786KEMYM8400", "order_line": "order_line_1786KEMYM8400",
		"a__b": "a__b_1786KEMYM8400", strings.Repeat("x", 63): strings.Repeat("x", 63) + "_1786KEMYM8400",
	} {
		p := mustNew(t, prefix)
		if got := p.ID(classicID); got != want || p.String() != prefix {
			t.Errorf("%s writes %s, want %s", p, got, want)
		}
		for _, text := range []string{want, p.String() + "_1786kemym8400", p.String() + "_I786kEmYm84oO"} {
			if id, err := p.ParseID(text); id != classicID || err != nil {
				t.Errorf("%s is read as %d, %v", text, id, err)
			}
		}
		found, rest, err := prefixed.Split(want)
		if found != p || rest != "1786KEMYM8400" || err != nil {
			t.Errorf("%s is split into %s and %s, %v", want, found, rest, err)
		}
	}
}

func TestNewRefusesOtherPrefixes(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "it is empty, 1 to 63 characters are allowed",
		strings.Repeat("a", 64): "it has 64 bytes, at most 63",
		"_ord":                  "it may not begin or end with an underscore",
		"ord_":                  "it may not begin or end with an underscore",
		"_":                     "it may not begin or end with an underscore",
		"Ord":                   "'O' at position 1 is not allowed: use a-z, 0-9 and _",
		"or-d":                  "'-' at position 3",
		"größe":                 "'ö' at position 3",
		"or\xff":                "byte 0xff at position 3",
	} {
		p, err := prefixed.New(text)
		if p != (prefixed.Prefix{}) || !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%q) = %v, %v, want %q", text, p, err, want)
		}
	}
}

func TestParseIDSaysWhatIsWrong(t *testing.T) {
	p := mustNew(t, "ord")
	for text, want := range map[string]string{
		"":                        `it has no prefix, expected "ord"`,
		"1786KEMYM8400":           `it has no prefix, expected "ord"`,
		"usr_1786KEMYM8400":       `its prefix is "usr", expected "ord"`,
		"ORD_1786KEMYM8400":       `its prefix is "ORD", expected "ord"`,
		"ord_line_1786KEMYM8400":  `its prefix is "ord_line", expected "ord"`,
		"order_1786KEMYM8400":     `its prefix is "order", expected "ord"`,
		"or_1786KEMYM8400":        `its prefix is "or", expected "ord"`,
		"_1786KEMYM8400":          `its prefix is "", expected "ord"`,
		"ord1786KEMYM8400":        `it has no prefix`,
		"ord":                     `it has no prefix`,
		"ord_":                    "0 characters follow the prefix, expected 13",
		"ord_786KEMYM8400":        "12 characters follow the prefix, expected 13",
		"ord_01786KEMYM8400":      "14 characters follow the prefix",
		"ord_1786KEMUM8400":       "after the prefix, 'U' at position 8 is not in its alphabet",
		"ord_8000000000000":       "above the greatest id",
		"ord_-000000000001":       "ids are not negative",
		"ord_0-00000000001":       "'-' at position 2",
		"ord_ 786KEMYM8400":       "' ' at position 1",
		strings.Repeat("x_", 999): `its prefix is "x_x_`,
	} {
		id, err := p.ParseID(text)
		if id != 0 || !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("ParseID(%q) = %d, %v, want %q", text, id, err, want)
		}
	}
}

func TestSplitRefusesTextWithoutAPrefix(t *testing.T) {
	for _, text := range []string{"", "1786KEMYM8400", "_1786KEMYM8400", "Ord_1786KEMYM8400", "ord__1786KEMYM8400"} {
		if p, rest, err := prefixed.Split(text); p != (prefixed.Prefix{}) || rest != "" || !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%q is split into %s and %s, %v", text, p, rest, err)
		}
	}
}

func TestTextsOfTheZeroPrefixAreRefused(t *testing.T) {
	var zero prefixed.Prefix
	text := zero.ID(7)
	if id, err := zero.ParseID(text); id != 0 || !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "get a Prefix from New") {
		t.Errorf("%s is read as %d, %v", text, id, err)
	}
	if _, err := zero.ParseBytes(zero.Bytes(make([]byte, 16)), 16); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("its bytes are read: %v", err)
	}
	if _, _, err := prefixed.Split(text); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("%s is split: %v", text, err)
	}
}

func TestNegativeIDsHaveNoText(t *testing.T) {
	p := mustNew(t, "ord")
	if id, err := p.ParseID(p.ID(-5)); id != 0 || !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("%s is read as %d, %v", p.ID(-5), id, err)
	}
}

func TestTextsSortAsIDs(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	p := mustNew(t, "ord")
	for range 10_000 {
		a, b := firn.ID(r.Uint64()>>(1+r.IntN(63))), firn.ID(r.Uint64()>>(1+r.IntN(63)))
		if (a < b) != (p.ID(a) < p.ID(b)) {
			t.Fatalf("seed %d: %d is %s, %d is %s", seed, a, p.ID(a), b, p.ID(b))
		}
		if got, err := p.ParseID(p.ID(a)); got != a || err != nil {
			t.Fatalf("seed %d: %d comes back as %d, %v", seed, a, got, err)
		}
	}
}

func TestReadingDoesNotAllocate(t *testing.T) {
	p := mustNew(t, "ord")
	text := p.ID(classicID)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = p.ParseID(text)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
