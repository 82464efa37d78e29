package serial

import "testing"

func TestChecksOfPublishedNumbers(t *testing.T) {
	for _, c := range []struct {
		check  Check
		digits string
		want   uint64
	}{
		{Luhn, "7992739871", 3},                   // Wikipedia, Luhn algorithm
		{Luhn, "411111111111111", 1},              // a card number for tests
		{Mod97, "794", 44},                        // ISO/IEC 7064, the standard's own example
		{Mod97, "32142829123456987654321611", 82}, // the IBAN GB82 WEST 1234 5698 7654 32, its letters as digits
		{NoCheck, "123", 0},
	} {
		if got := c.check.of([]byte(c.digits)); got != c.want {
			t.Errorf("the %v check of %s is %d, want %d", c.check, c.digits, got, c.want)
		}
	}
}

func TestACheckThatIsNoneOfThemNamesItself(t *testing.T) {
	for want, c := range map[string]Check{"none": NoCheck, "luhn": Luhn, "mod97": Mod97, "Check(3)": 3, "Check(99)": 99} {
		if got := c.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
