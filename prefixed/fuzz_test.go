package prefixed_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/prefixed"
)

// number reads base32 the simple way: it maps the digits to those of package big, which
// are 0 to 9 and a to v.
func number(text string) (*big.Int, bool) {
	const digits, big32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0123456789abcdefghijklmnopqrstuv"
	other := []byte(text)
	for i, c := range other {
		switch {
		case strings.IndexByte("iIlL", c) >= 0:
			c = '1'
		case c == 'o' || c == 'O':
			c = '0'
		case 'a' <= c && c <= 'z':
			c -= 'a' - 'A'
		}
		digit := strings.IndexByte(digits, c)
		if digit < 0 {
			return nil, false
		}
		other[i] = big32[digit]
	}
	return new(big.Int).SetString("0"+string(other), 32)
}

func FuzzParseID(f *testing.F) {
	for _, text := range []string{
		"ord_1786KEMYM8400", "ord_7zzzzzzzzzzzz", "ord_8000000000000", "usr_1786KEMYM8400", "ord_I786kemLm84oO", "ord_", "ord", "_", "",
		"ord_line_1786KEMYM8400", "ord__786KEMYM8400", "ord_1786KEMYM840U", "ord_1786KEMYM84é",
	} {
		f.Add("ord", text)
	}
	f.Add("7", "7_0000000000001")
	f.Fuzz(func(t *testing.T, prefix, text string) {
		p, err := prefixed.New(prefix)
		if err != nil {
			if p != (prefixed.Prefix{}) || !errors.Is(err, firn.ErrSyntax) {
				t.Fatalf("New(%q) = %v, %v", prefix, p, err)
			}
			return
		}
		rest, ok := strings.CutPrefix(text, prefix+"_")
		want := firn.ID(0)
		if ok = ok && len(rest) == 13; ok {
			n, digits := number(rest)
			if ok = digits && n.BitLen() <= 63; ok {
				want = firn.ID(n.Int64())
			}
		}
		id, err := p.ParseID(text)
		if id != want || ok != (err == nil) || err != nil && (!errors.Is(err, firn.ErrSyntax) || len(err.Error()) > 2000) {
			t.Fatalf("%s: ParseID(%q) = %d, %v, want %d", p, text, id, err, want)
		}
		if again, err := p.ParseID(p.ID(id)); again != id || err != nil {
			t.Fatalf("%s: %d is read back as %d, %v", p, id, again, err)
		}
		found, rest, err := prefixed.Split(text)
		if err == nil && found.String()+"_"+rest != text || ok && found != p {
			t.Fatalf("Split(%q) = %s, %s, %v", text, found, rest, err)
		}
	})
}

func FuzzParseBytes(f *testing.F) {
	for _, text := range []string{
		"usr_01H455VB4PEX5VSKNK084SN02Q", "usr_7zzzzzzzzzzzzzzzzzzzzzzzzz", "usr_8zzzzzzzzzzzzzzzzzzzzzzzzz", "usr_1ZZZZZZZZZZZZZZZZZZZ",
		"usr_20000000000000000000", "usr_7Z", "usr_U1", "usr_", "ord_00", "",
	} {
		for _, n := range []int{0, 1, 12, 16} {
			f.Add(n, text)
		}
	}
	f.Fuzz(func(t *testing.T, n int, text string) {
		p := mustNew(t, "usr")
		b, err := p.ParseBytes(text, n)
		rest, ok := strings.CutPrefix(text, "usr_")
		var want *big.Int
		if ok = ok && n > 0 && n <= 1024 && len(rest) == (8*n+4)/5; ok {
			want, ok = number(rest)
			ok = ok && want.BitLen() <= 8*n
		}
		switch {
		case ok != (err == nil):
			t.Fatalf("ParseBytes(%q, %d) = %x, %v", text, n, b, err)
		case err != nil && (b != nil || !errors.Is(err, firn.ErrSyntax) && !errors.Is(err, firn.ErrRange) || len(err.Error()) > 1000):
			t.Fatalf("ParseBytes(%q, %d) = %x, %v", text, n, b, err)
		case ok && (len(b) != n || new(big.Int).SetBytes(b).Cmp(want) != 0):
			t.Fatalf("ParseBytes(%q, %d) = %x, want %x", text, n, b, want)
		case ok && len(p.Bytes(b)) != len(text):
			t.Fatalf("%q is written %q", text, p.Bytes(b))
		}
	})
}

func FuzzBytes(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0})
	f.Add([]byte("twelve bytes"))
	f.Add([]byte("sixteen bytes: 16"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 100 {
			return
		}
		p := mustNew(t, "usr")
		text := p.Bytes(b)
		n, ok := number(strings.TrimPrefix(text, "usr_"))
		if !ok || n.Cmp(new(big.Int).SetBytes(b)) != 0 {
			t.Fatalf("%x is written %s", b, text)
		}
		if len(b) == 0 {
			return
		}
		if got, err := p.ParseBytes(text, len(b)); string(got) != string(b) || err != nil {
			t.Fatalf("%x is read back as %x, %v", b, got, err)
		}
	})
}
