package serial_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/serial"
)

func TestParseSaysWhatIsWrong(t *testing.T) {
	f := mustNew(t, serial.Config{Prefix: "TX"}) // TXyyyyMMddHHmmssSSS00000wwwwssss
	const good = "TX" + "20261120141503123" + "00000" + "0017" + "0042"
	if id, err := f.Parse(good); err != nil || mustText(t, f, id) != good {
		t.Fatalf("%s is read as %d, %v", good, id, err)
	}
	with := func(at int, piece string) string { return good[:at] + piece + good[at+len(piece):] }
	for _, c := range []struct {
		claim, text string
		sentinel    error
		want        string
	}{
		{"no text", "", firn.ErrSyntax, "it is empty"},
		{"another prefix", with(0, "TY"), firn.ErrSyntax, `it begins with "TY", the prefix is "TX"`},
		{"a prefix in another case", with(0, "tx"), firn.ErrSyntax, `it begins with "tx"`},
		{"less than a prefix", "T", firn.ErrSyntax, `it begins with "T"`},
		{"too short", good[:31], firn.ErrSyntax, "it has 31 characters, expected 32: TXyyyyMMddHHmmssSSS00000wwwwssss"},
		{"too long", good + "0", firn.ErrSyntax, "it has 33 characters"},
		{"a letter", with(5, "x"), firn.ErrSyntax, "'x' at position 6 is not a digit"},
		{"a space", good + " ", firn.ErrSyntax, "' ' at position 33"},
		{"a sign", with(2, "-"), firn.ErrSyntax, "'-' at position 3"},
		{"month 13", with(6, "13"), firn.ErrRange, "month 13 is out of range: 1 to 12 are allowed"},
		{"month 0", with(6, "00"), firn.ErrRange, "month 0"},
		{"30 February", with(6, "0230"), firn.ErrRange, "day 30 is out of range: 1 to 28"},
		{"29 February in a leap year is fine, 30 not", with(2, "20280230"), firn.ErrRange, "day 30 is out of range: 1 to 29"},
		{"29 February 2100", with(2, "21000229"), firn.ErrRange, "day 29 is out of range: 1 to 28"},
		{"31 November", with(6, "1131"), firn.ErrRange, "day 31 is out of range: 1 to 30"},
		{"day 0", with(8, "00"), firn.ErrRange, "day 0"},
		{"hour 24", with(10, "24"), firn.ErrRange, "hour 24 is out of range: 0 to 23"},
		{"minute 60", with(12, "60"), firn.ErrRange, "minute 60"},
		{"a leap second", with(14, "60"), firn.ErrRange, "second 60"},
		{"before the epoch", with(2, "2024"), firn.ErrRange, "time 2024-11-20T14:15:03.123Z is out of range"},
		{"after the end", with(2, "2095"), firn.ErrTimeExhausted, "ran out of time"},
		{"something in the fill", with(21, "1"), firn.ErrSyntax, "only zeros are allowed at positions 20 to 24"},
		{"a worker too great", with(24, "1024"), firn.ErrRange, "worker 1024 is out of range: 0 to 1023"},
		{"a sequence too great", with(28, "4096"), firn.ErrRange, "sequence 4096 is out of range: 0 to 4095"},
	} {
		id, err := f.Parse(c.text)
		if id != 0 || !errors.Is(err, c.sentinel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s is read as %d, %v, want %q", c.claim, c.text, id, err, c.want)
		}
		if p, err := f.Parts(c.text); p != (serial.Parts{}) || err == nil {
			t.Errorf("%s: %s has the parts %+v, %v", c.claim, c.text, p, err)
		}
	}
}

func TestEveryDayOfTwoCenturiesIsRead(t *testing.T) {
	f := mustNew(t, serial.Config{Layout: mustLayout(t, "40/0/0/0,unit=1s,epoch=1900-01-01")})
	for day := firn.ID(0); day < 201*365; day++ {
		text := mustText(t, f, day*24*60*60)
		if id, err := f.Parse(text); id != day*24*60*60 || err != nil {
			t.Fatalf("%s is read as %d, %v", text, id, err)
		}
	}
}

func TestATimeBetweenTwoTicksIsRefused(t *testing.T) {
	f := mustNew(t, serial.Config{Layout: mustLayout(t, "sonyflake")}) // 10ms
	const good = "20261120141503120" + "0000000" + "042" + "00017"
	if _, err := f.Parse(good); err != nil {
		t.Fatal(err)
	}
	_, err := f.Parse(strings.Replace(good, "3120", "3121", 1))
	if !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "between two ticks of 10ms") {
		t.Errorf("the error is %v", err)
	}
}

func TestAWideFillCannotOverflow(t *testing.T) {
	f := mustNew(t, serial.Config{Width: 64})
	const wraps = "18446744073709551616" // 2^64
	text := "20261120141503123" + strings.Repeat("0", 19) + wraps + "00170042"
	if id, err := f.Parse(text); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("%s is read as %d, %v", text, id, err)
	}
	text = strings.Replace(text, wraps, strings.Repeat("0", 20), 1)
	if _, err := f.Parse(text); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

func TestChecksFindTheErrorsThatTheirDocumentationNames(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for _, check := range []serial.Check{serial.Luhn, serial.Mod97} {
		for _, prefix := range []string{"", "P", "42"} {
			f := mustNew(t, serial.Config{Check: check, Prefix: prefix})
			for range 100 {
				text := []byte(mustText(t, f, firn.ID(r.Uint64()&uint64(firn.DefaultLayout().MaxID()))))
				for i := len(prefix); i < len(text); i++ {
					was := text[i]
					for d := byte('0'); d <= '9'; d++ {
						text[i] = d
						if _, err := f.Parse(string(text)); d != was && !isCheck(err) {
							t.Fatalf("seed %d: in %s position %d was %c: %v", seed, text, i+1, was, err)
						}
					}
					text[i] = was
					if i+1 == len(text) || text[i] == text[i+1] || check == serial.Luhn && text[i]+text[i+1] == '0'+'9' && (text[i] == '0' || text[i] == '9') {
						continue
					}
					text[i], text[i+1] = text[i+1], text[i]
					if _, err := f.Parse(string(text)); !isCheck(err) {
						t.Fatalf("seed %d: in %s positions %d and %d are swapped: %v", seed, text, i+1, i+2, err)
					}
					text[i], text[i+1] = text[i+1], text[i]
				}
				if _, err := f.Parse(string(text)); err != nil {
					t.Fatalf("seed %d: %s, unharmed: %v", seed, text, err)
				}
			}
		}
	}
}

func isCheck(err error) bool {
	return errors.Is(err, firn.ErrSyntax) && strings.Contains(err.Error(), "a digit is wrong, or two are swapped")
}

func TestChecksHaveNames(t *testing.T) {
	for _, c := range []serial.Check{serial.NoCheck, serial.Luhn, serial.Mod97} {
		if got, err := serial.ParseCheck(c.String()); got != c || err != nil {
			t.Errorf("%v is read as %v, %v", c, got, err)
		}
	}
	if c, err := serial.ParseCheck("crc"); c != serial.NoCheck || !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("crc is read as %v, %v", c, err)
	}
}
