package ff1_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/ff1"
)

const alphabet36 = "0123456789abcdefghijklmnopqrstuvwxyz"

func TestThePublishedSamplesEncryptAndDecrypt(t *testing.T) {
	file, err := os.ReadFile("testdata/samples.json")
	if err != nil {
		t.Fatal(err)
	}
	var sets map[string]struct {
		Vectors []struct {
			Radix                               int
			Alphabet, Key, Tweak, Plain, Cipher string
		}
	}
	if err := json.Unmarshal(file, &sets); err != nil {
		t.Fatal(err)
	}
	for set, least := range map[string]int{"nist": 9, "acvp": 8, "long": 3} {
		if n := len(sets[set].Vectors); n < least {
			t.Errorf("%s: %d vectors, want %d", set, n, least)
		}
		for i, v := range sets[set].Vectors {
			key, tweak := unhex(t, v.Key), unhex(t, v.Tweak)
			c, err := ff1.New(key, v.Radix)
			if err != nil {
				t.Fatal(err)
			}
			alphabet := v.Alphabet
			if alphabet == "" {
				alphabet = alphabet36
			}
			got, err := c.Encrypt(tweak, numerals(alphabet, v.Plain))
			if text(alphabet, got) != v.Cipher || err != nil {
				t.Errorf("%s %d: Encrypt(%s) = %s, %v, want %s", set, i+1, v.Plain, text(alphabet, got), err, v.Cipher)
			}
			got, err = c.Decrypt(tweak, numerals(alphabet, v.Cipher))
			if text(alphabet, got) != v.Plain || err != nil {
				t.Errorf("%s %d: Decrypt(%s) = %s, %v, want %s", set, i+1, v.Cipher, text(alphabet, got), err, v.Plain)
			}
		}
	}
}

func TestInputThatTheStandardForbidsIsRefused(t *testing.T) {
	key := make([]byte, 16)
	for _, radix := range []int{-1, 0, 1, 1<<16 + 1} {
		if _, err := ff1.New(key, radix); err == nil {
			t.Errorf("radix %d is accepted", radix)
		}
	}
	for _, n := range []int{0, 15, 17, 31, 33} {
		if _, err := ff1.New(make([]byte, n), 10); err == nil {
			t.Errorf("a key of %d bytes is accepted", n)
		}
	}
	c, err := ff1.New(key, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][]uint16{nil, {1}, make([]uint16, 5), {0, 1, 2, 3, 4, 10}} {
		if _, err := c.Encrypt(nil, x); err == nil {
			t.Errorf("Encrypt accepts %v", x)
		}
		if _, err := c.Decrypt(nil, x); err == nil {
			t.Errorf("Decrypt accepts %v", x)
		}
	}
	x := []uint16{0, 1, 2, 3, 4, 5}
	if _, err := c.Encrypt(nil, x); err != nil || !slices.Equal(x, []uint16{0, 1, 2, 3, 4, 5}) {
		t.Errorf("six digits: %v; the argument is %v afterwards", err, x)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func numerals(alphabet, s string) []uint16 {
	x := make([]uint16, len(s))
	for i := range len(s) {
		x[i] = uint16(strings.IndexByte(alphabet, s[i]))
	}
	return x
}

func text(alphabet string, x []uint16) string {
	var s strings.Builder
	for _, n := range x {
		s.WriteByte(alphabet[n])
	}
	return s.String()
}
