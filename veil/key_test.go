package veil_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/veil"
)

const (
	hex16 = "2b7e151628aed2a6abf7158809cf4f3c"
	hex24 = "2b7e151628aed2a6abf7158809cf4f3cef4359d8d580aa4f"
	hex32 = "2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94"
)

func TestKeysAreReadFromText(t *testing.T) {
	material, err := hex.DecodeString(hex32)
	if err != nil {
		t.Fatal(err)
	}
	c := newCipher(t, veil.Config{Keys: []veil.Key{newKey(t, 1, material)}})
	want, err := c.Veil(7)
	if err != nil {
		t.Fatal(err)
	}
	odd := []byte{0xfb, 0xff, 0xfe, 15: 0xf8} // + and / or - and _ in base64
	for _, c := range []struct {
		claim, text, want string
	}{
		{"one line", "1:" + hex32, "[key 1 (AES-256)]"},
		{"a line that ends", "1:" + hex32 + "\n", "[key 1 (AES-256)]"},
		{"lower case", "1:" + strings.ToLower(hex32), "[key 1 (AES-256)]"},
		{"space around", "\t 1 : " + hex32 + " \r\n", "[key 1 (AES-256)]"},
		{"comments and empty lines", "# keys\n\n  # more\n1:" + hex32 + " # since May: a3\n", "[key 1 (AES-256)]"},
		{"base64", "1:" + base64.StdEncoding.EncodeToString(material), "[key 1 (AES-256)]"},
		{"base64url", "1:" + base64.RawURLEncoding.EncodeToString(material), "[key 1 (AES-256)]"},
		{"a byte order mark", "\ufeff1:" + hex32, "[key 1 (AES-256)]"},
		{"leading zeros", "001:" + hex32, "[key 1 (AES-256)]"},
		{"several versions in any order", "1:" + hex32 + "\n10:" + hex16 + "\n2:" + hex24,
			"[key 1 (AES-256) key 10 (AES-128) key 2 (AES-192)]"},
		{"base64's last characters", "0:" + base64.StdEncoding.EncodeToString(odd) + "\n7:" + base64.URLEncoding.EncodeToString(odd),
			"[key 0 (AES-128) key 7 (AES-128)]"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, err := veil.ParseKeys(c.text)
			if fmt.Sprint(got) != c.want || err != nil {
				t.Fatalf("ParseKeys = %v, %v, want %s", got, err, c.want)
			}
			if strings.HasPrefix(got[0].String(), "key 1 ") {
				veiled, err := newCipher(t, veil.Config{Keys: got[:1]}).Veil(7)
				if veiled != want || err != nil {
					t.Errorf("it is another key: %d, %v, want %d", veiled, err, want)
				}
			}
		})
	}
}

func TestUnreadableKeysAreNamedAndNotShown(t *testing.T) {
	for _, c := range []struct {
		claim, text string
		want        []string
	}{
		{"nothing", " \n# only a comment\n", []string{"unusable key: there is no key"}},
		{"no colon", hex16, []string{"line 1: unusable key: it has no colon: write VERSION:HEX"}},
		{"version and key exchanged", hex16 + ":1", []string{"line 1: unusable key: there is no version before the colon"}},
		{"a version too great", "1000000000:" + hex16, []string{"write a whole number from 0 to 999999999"}},
		{"a negative version", "-1:" + hex16, []string{"there is no version before the colon"}},
		{"no version", ":" + hex16, []string{"there is no version before the colon"}},
		{"no key", "3:", []string{"the key of version 3 is missing: write 32, 48 or 64 hex digits"}},
		{"a digit lost", "3:" + hex16[1:], []string{"the key of version 3 has 31 hex digits: write 32, 48 or 64"}},
		{"two digits lost", "3:" + hex16[2:], []string{"the key of version 3 has 30 hex digits"}},
		{"hex as long as base64", "3:" + hex24[:44], []string{"the key of version 3 has 44 hex digits"}},
		{"a letter for a digit", "3:" + hex16[:31] + "!", []string{"version 3 is neither hex nor base64, see its character 32"}},
		{"base64 of another length", "3:" + base64.StdEncoding.EncodeToString(make([]byte, 20)) + "=", []string{"base64 of 20 bytes"}},
		{"base64 with bits to spare", "3:" + strings.Repeat("z", 22), []string{"neither hex nor base64"}},
		{"both alphabets of base64", "3:+-" + strings.Repeat("A", 20), []string{"neither hex nor base64"}},
		{"one version twice", "# keys\n3:" + hex16 + "\n3:" + hex24, []string{"line 3: unusable key: version 3 is already in line 2"}},
		{"every mistake", "1:" + hex16[4:] + "\n2:" + hex16 + "\n" + hex32, []string{"line 1: unusable key", "line 3: unusable key"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, err := veil.ParseKeys(c.text)
			if got != nil || !aboutKeys(err) {
				t.Fatalf("ParseKeys = %v, %v, want an error about keys", got, err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want %q in it", err, want)
				}
			}
			for i := 0; i+6 <= len(hex32); i++ {
				if strings.Contains(strings.ToUpper(err.Error()), hex32[i:i+6]) {
					t.Errorf("the error %q shows the key", err)
				}
			}
		})
	}
	for _, n := range []int{0, 15, 17, 33} {
		if _, err := veil.NewKey(1, make([]byte, n)); !aboutKeys(err) || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes", n)) {
			t.Errorf("a key of %d bytes gives %v", n, err)
		}
	}
	for _, version := range []int{-1, 1_000_000_000} {
		if _, err := veil.NewKey(version, make([]byte, 16)); !aboutKeys(err) {
			t.Errorf("version %d gives %v", version, err)
		}
	}
}

func TestAKeyIsACopy(t *testing.T) {
	material := bytes.Repeat([]byte{1}, 16)
	key := newKey(t, 1, material)
	before, err := newCipher(t, veil.Config{Keys: []veil.Key{key}}).Veil(7)
	clear(material)
	after, _ := newCipher(t, veil.Config{Keys: []veil.Key{key}}).Veil(7)
	if before != after || err != nil {
		t.Error("a key changes with the bytes it was made of")
	}
}

// The test tries the ways in which values get into logs by accident.
func TestNothingPrintsAKey(t *testing.T) {
	const b = 0xa7 // repeated, it is easy to find
	key := newKey(t, 2, bytes.Repeat([]byte{b}, 32))
	c := newCipher(t, veil.Config{Keys: []veil.Key{key}, Namespace: "orders"})
	type settings struct { // fmt cannot call methods on unexported fields
		Key    veil.Key
		hidden veil.Key
		list   []veil.Key
		config veil.Config
		cipher *veil.Cipher
		value  veil.Cipher
		any    any
	}
	everything := settings{key, key, []veil.Key{key}, veil.Config{Keys: []veil.Key{key}}, c, *c, key}
	var out bytes.Buffer
	for _, v := range []any{key, &key, []veil.Key{key}, map[string]veil.Key{"k": key}, c, *c, everything, &everything, veil.Config{Keys: []veil.Key{key}}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%o", "%b", "%c", "%U", "%T", "%t", "%e"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		text, err := json.Marshal(v)
		fmt.Fprintln(&out, string(text), err)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("text", "v", v)
	}
	text := strings.ToLower(out.String())
	for _, form := range []string{"a7a7a7a7a7a7", "a7 a7 a7", "167 167", "167, 167", "0xa7, 0xa7", "247 247", "10100111 10100111", "u+00a7 u+00a7", "\u00a7", "p6enp6en", "2812782503"} {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%q shows the key", text[max(0, i-200):i+20])
		}
	}
	if s := fmt.Sprintf("%v, %#v, %v", key, key, veil.Key{}); s != "key 2 (AES-256), veil.Key(key 2 (AES-256)), no key" {
		t.Errorf("keys print as %s", s)
	}
	if key.LogValue().String() != "key 2 (AES-256)" || c.String() != `veil of 63 bits, key 2, namespace "orders"` {
		t.Errorf("%v, %v", key.LogValue(), c)
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add("1:" + hex32)
	f.Add("# keys\n2:" + hex16 + "\r\n\n1:K34VFiiu0qar9xWICc9PPA==")
	f.Add(":\n1:\n:1\n1:zz")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := veil.ParseKeys(text)
		if err != nil {
			if list != nil || !aboutKeys(err) {
				t.Fatalf("%v, %v", list, err)
			}
			return
		}
		if len(list) == 0 {
			t.Fatal("no keys and no error")
		}
		for _, key := range list { // New accepts the keys
			if _, err := newCipher(t, veil.Config{Keys: []veil.Key{key}}).Veil(firn.MaxID); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAFileWithoutKeysGivesAShortError(t *testing.T) {
	_, err := veil.ParseKeys(strings.Repeat("some other file\n", 10_000))
	if !aboutKeys(err) || strings.Count(err.Error(), "\n") != 10 || !strings.Contains(err.Error(), "and 9990 more lines") {
		t.Error(err)
	}
}

func aboutKeys(err error) bool { return err != nil && strings.Contains(err.Error(), "unusable key: ") }
