package prefixed_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/objectid"
)

func mustHex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Three of the UUIDs come from the TypeID specification and from RFC 9562, A.6.
func TestBytesAreANumberInBase32(t *testing.T) {
	p := mustNew(t, "prefix")
	for _, c := range []struct{ hex, want string }{
		{"00000000-0000-0000-0000-000000000000", "prefix_00000000000000000000000000"},
		{"00000000-0000-0000-0000-000000000001", "prefix_00000000000000000000000001"},
		{"00000000-0000-0000-0000-000000000020", "prefix_00000000000000000000000010"},
		{"ffffffff-ffff-ffff-ffff-ffffffffffff", "prefix_7ZZZZZZZZZZZZZZZZZZZZZZZZZ"},
		{"0110c853-1d09-52d8-d73e-1194e95b5f19", "prefix_0123456789ABCDEFGHJKMNPQRS"},
		{"01890a5d-ac96-774b-bcce-b302099a8057", "prefix_01H455VB4PEX5VSKNK084SN02Q"},
		{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "prefix_01FWHE4YDGFK1SHH6W1G60EECF"},
		{"ffffffffffffffffffffffff", "prefix_1ZZZZZZZZZZZZZZZZZZZ"},
		{"507f191e810c19729de860ea", "prefix_0M3Z34F8230SEAEYGR7A"},
		{"ff", "prefix_7Z"},
		{"ffff", "prefix_1ZZZ"},
		{"ffffff", "prefix_FZZZZ"},
		{"ffffffff", "prefix_3ZZZZZZ"},
		{"ffffffffff", "prefix_ZZZZZZZZ"},
		{"ffffffffffff", "prefix_7ZZZZZZZZZ"},
	} {
		b := mustHex(t, c.hex)
		got := p.Bytes(b)
		if got != c.want {
			t.Errorf("%s is written %s, want %s", c.hex, got, c.want)
		}
		for _, text := range []string{got, strings.ToLower(got)} {
			if back, err := p.ParseBytes(text, len(b)); !bytes.Equal(back, b) || err != nil {
				t.Errorf("%s is read as %x, %v, want %s", text, back, err, c.hex)
			}
		}
	}
}

func TestAnObjectIDHas20Characters(t *testing.T) {
	p := mustNew(t, "doc")
	id, err := objectid.Parse("507f191e810c19729de860ea")
	if err != nil {
		t.Fatal(err)
	}
	text := p.Bytes(id[:])
	b, err := p.ParseBytes(text, len(id))
	if len(text) != len("doc_")+20 || err != nil || objectid.ID(b) != id {
		t.Errorf("%s is written %s and read %x, %v", id, text, b, err)
	}
}

func TestParseBytesSaysWhatIsWrong(t *testing.T) {
	p := mustNew(t, "usr")
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"ord_01H455VB4PEX5VSKNK084SN02Q", 16, `its prefix is "ord", expected "usr"`},
		{"01H455VB4PEX5VSKNK084SN02Q", 16, `it has no prefix`},
		{"usr_01H455VB4PEX5VSKNK084SN02", 16, "25 characters follow the prefix, expected 26"},
		{"usr_01H455VB4PEX5VSKNK084SN02Q", 12, "26 characters follow the prefix, expected 20"},
		{"usr_", 1, "0 characters follow the prefix, expected 2"},
		{"usr_81H455VB4PEX5VSKNK084SN02Q", 16, "the part after the prefix has more than 16 bytes"},
		{"usr_20000000000000000000", 12, "more than 12 bytes"},
		{"usr_U1H455VB4PEX5VSKNK084SN02Q", 16, "after the prefix, 'U' at position 1 is not in its alphabet"},
		{"usr_01H455VB4PEX5VSKNK084SN02u", 16, "'u' at position 26"},
		{"usr_01H455VB4PEX5VSKNK084SN0é", 16, "'é' at position 25"},
		{"usr_01H455VB4PEX5V-KNK084SN02Q", 16, "'-' at position 15"},
		{"usr_81H455VB4PEX5V-KNK084SN02Q", 16, "'-' at position 15"},
	} {
		b, err := p.ParseBytes(c.text, c.n)
		if b != nil || !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ParseBytes(%q, %d) = %x, %v, want %q", c.text, c.n, b, err, c.want)
		}
	}
	for _, n := range []int{0, -1, math.MinInt, 1025, math.MaxInt} {
		if b, err := p.ParseBytes("usr_", n); b != nil || !errors.Is(err, firn.ErrRange) {
			t.Errorf("%d bytes are read as %x, %v, want ErrRange", n, b, err)
		}
	}
}

func TestTextsSortAsBytes(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	p := mustNew(t, "usr")
	for range 10_000 {
		a, b := make([]byte, 1+r.IntN(40)), []byte{}
		for i := range a {
			a[i] = byte(r.Uint32())
		}
		b = append(b, a...)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		if strings.Compare(p.Bytes(a), p.Bytes(b)) != bytes.Compare(a, b) {
			t.Fatalf("seed %d: %x is %s, %x is %s", seed, a, p.Bytes(a), b, p.Bytes(b))
		}
		if got, err := p.ParseBytes(p.Bytes(a), len(a)); !bytes.Equal(got, a) || err != nil {
			t.Fatalf("seed %d: %x comes back as %x, %v", seed, a, got, err)
		}
	}
}
