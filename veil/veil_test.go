package veil_test

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/veil"
)

func newCipher(tb testing.TB, cfg veil.Config) *veil.Cipher {
	tb.Helper()
	c, err := veil.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func newKey(tb testing.TB, version int, material []byte) veil.Key {
	tb.Helper()
	k, err := veil.NewKey(version, material)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// keys returns keys of versions 1, 2, … with the lengths given, in bytes.
func keys(tb testing.TB, lengths ...int) []veil.Key {
	tb.Helper()
	list := make([]veil.Key, len(lengths))
	for i, n := range lengths {
		list[i] = newKey(tb, i+1, bytes.Repeat([]byte{byte(0x51 + i)}, n))
	}
	return list
}

// Later versions must make the same veils.
func TestVeilsAreThoseOfAnotherProgram(t *testing.T) {
	file, err := os.ReadFile("testdata/radix2.json")
	if err != nil {
		t.Fatal(err)
	}
	var known struct {
		Veils []struct {
			Key, Namespace string
			Bits           int
			ID, Veiled     uint64 `json:",string"`
		}
	}
	if err := json.Unmarshal(file, &known); err != nil {
		t.Fatal(err)
	}
	if len(known.Veils) < 81 {
		t.Fatalf("%d veils", len(known.Veils))
	}
	for _, v := range known.Veils {
		material, err := hex.DecodeString(v.Key)
		if err != nil {
			t.Fatal(err)
		}
		c := newCipher(t, veil.Config{Keys: []veil.Key{newKey(t, 1, material)}, Bits: v.Bits, Namespace: v.Namespace})
		if got, err := c.VeilUint64(v.ID); got != v.Veiled || err != nil {
			t.Errorf("%v: the veil of %d is %d, %v, want %d", c, v.ID, got, err, v.Veiled)
		}
		if got, err := c.UnveilUint64(v.Veiled); got != v.ID || err != nil {
			t.Errorf("%v: unveiled, %d is %d, %v, want %d", c, v.Veiled, got, err, v.ID)
		}
	}
}

func TestTheFastFormEqualsFF1(t *testing.T) {
	random := rand.New(rand.NewPCG(38, 7))
	for range 300 {
		material := make([]byte, []int{16, 24, 32}[random.IntN(3)])
		fill(random, material)
		tweak := make([]byte, random.IntN(255+1)>>random.IntN(8))
		fill(random, tweak)
		bits := 20 + random.IntN(45)
		general := newFF1(t, material, 2)
		c := newCipher(t, veil.Config{Keys: []veil.Key{newKey(t, 7, material)}, Bits: bits, Namespace: string(tweak)})
		for range 10 {
			id := random.Uint64() >> (64 - bits)
			want := number(general.encrypt(tweak, numerals(id, bits)))
			if got, err := c.VeilUint64(id); got != want || err != nil {
				t.Fatalf("%d bits, tweak %x, key %x: the veil of %d is %d, %v, want %d", bits, tweak, material, id, got, err, want)
			}
			if got, err := c.UnveilUint64(want); got != id || err != nil {
				t.Fatalf("%d bits, tweak %x, key %x: unveiled, %d is %d, %v, want %d", bits, tweak, material, want, got, err, id)
			}
		}
	}
}

func fill(random *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(random.Uint32())
	}
}

func numerals(n uint64, bits int) []uint16 {
	x := make([]uint16, bits)
	for i := range x {
		x[i] = uint16(n >> (bits - 1 - i) & 1)
	}
	return x
}

func number(x []uint16) (n uint64) {
	for _, bit := range x {
		n = n<<1 | uint64(bit)
	}
	return n
}

func TestEveryNumberOfAWidthIsAVeilOnce(t *testing.T) {
	for _, cfg := range []veil.Config{
		{Keys: keys(t, 16), Bits: 20},
		{Keys: keys(t, 16, 24, 32), Bits: 22, VersionBits: 2},
	} {
		c := newCipher(t, cfg)
		seen := make([]bool, 1<<cfg.Bits)
		for id := range firn.ID(1) << 20 {
			veiled, err := c.Veil(id)
			if err != nil {
				t.Fatal(err)
			}
			if seen[veiled] {
				t.Fatalf("%v: %d is the veil of two ids", c, veiled)
			}
			seen[veiled] = true
		}
	}
}

func TestTheNewestKeyVeilsAndAllUnveil(t *testing.T) {
	all := keys(t, 32, 16, 24, 32, 16) // versions 1 to 5
	const id = firn.ID(249681087299011313)
	veils := map[int]firn.ID{}
	for newest := range all {
		oldest := max(0, newest-3)
		c := newCipher(t, veil.Config{Keys: all[oldest : newest+1], VersionBits: 2})
		veiled, err := c.Veil(id)
		if err != nil {
			t.Fatalf("version %d: %v", newest+1, err)
		}
		if got := int(veiled >> 61); got != (newest+1)%4 {
			t.Errorf("the veil of version %d has the version bits %d", newest+1, got)
		}
		veils[newest+1] = veiled
		for version, veiled := range veils {
			got, err := c.Unveil(veiled)
			switch {
			case version > oldest:
				if got != id || err != nil {
					t.Errorf("with keys %d to %d the veil of version %d is %d, %v", oldest+1, newest+1, version, got, err)
				}
			case got == id: // another key has the same bits
				t.Errorf("with keys %d to %d the veil of version %d is read", oldest+1, newest+1, version)
			}
		}
	}
	retired := newCipher(t, veil.Config{Keys: all[1:3], VersionBits: 2})
	_, err := retired.Unveil(veils[1])
	if !errors.Is(err, veil.ErrVersion) || !strings.Contains(err.Error(), "version 1, 5, 9, …; known here: keys 3, 2") {
		t.Errorf("the veil of a retired key gives %v", err)
	}
}

func TestNamespacesKeysAndWidthsVeilUnlike(t *testing.T) {
	seen := map[firn.ID]string{}
	for _, cfg := range []veil.Config{
		{Keys: keys(t, 16)}, {Keys: keys(t, 32)}, {Keys: keys(t, 16), Bits: 62},
		{Keys: keys(t, 16), Namespace: "orders"}, {Keys: keys(t, 16), Namespace: "users"},
		{Keys: keys(t, 16), Namespace: "\x00"}, {Keys: keys(t, 16), Namespace: strings.Repeat("o", 255)},
	} {
		c := newCipher(t, cfg)
		veiled, err := c.Veil(7)
		if err != nil || seen[veiled] != "" {
			t.Errorf("%v: %d, %v, as %s", c, veiled, err, seen[veiled])
		}
		seen[veiled] = c.String()
	}
}

func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	full := newCipher(t, veil.Config{Keys: keys(t, 16)})
	js := newCipher(t, veil.Config{Keys: keys(t, 16), Bits: 53})
	versioned := newCipher(t, veil.Config{Keys: keys(t, 16, 16, 16), VersionBits: 2})
	wide := newCipher(t, veil.Config{Keys: keys(t, 16), Bits: 64})
	for _, c := range []struct {
		claim  string
		do     func(firn.ID) (firn.ID, error)
		number firn.ID
		want   string // "" if it is accepted
	}{
		{"the greatest id", full.Veil, firn.MaxID, ""},
		{"the greatest veil", full.Unveil, firn.MaxID, ""},
		{"a negative id", full.Veil, -5, "id -5 is out of range: 0 to 9223372036854775807 are allowed (veils have 63 bits)"},
		{"a negative veil", full.Unveil, -1, "veiled id -1 is out of range: 0 to 9223372036854775807 are allowed (veils have 63 bits)"},
		{"the greatest of 53 bits", js.Veil, 1<<53 - 1, ""},
		{"the greatest veil of 53 bits", js.Unveil, 1<<53 - 1, ""},
		{"an id of 54 bits", js.Veil, 1 << 53, "id 9007199254740992 is out of range: 0 to 9007199254740991 are allowed (veils have 53 bits)"},
		{"a veil of 54 bits", js.Unveil, 1 << 53, "veiled id 9007199254740992 is out of range: 0 to 9007199254740991"},
		{"an id beside version bits", versioned.Veil, 1<<61 - 1, ""},
		{"an id in the version bits", versioned.Veil, 1 << 61, "id 2305843009213693952 is out of range: 0 to " +
			"2305843009213693951 are allowed (veils have 63 bits, 2 of them for the key's version)"},
		{"a negative id beside version bits", versioned.Veil, -1, "id -1 is out of range: 0 to 2305843009213693951 are allowed"},
		{"version bits without a key", versioned.Unveil, 5, "veil: no key of this version: veiled id 5 has the version bits of " +
			"version 0, 4, 8, …; known here: keys 3, 2, 1"},
		{"an ID in a width of 64 bits", wide.Veil, 1, "VeilUint64"},
		{"a veil in a width of 64 bits", wide.Unveil, 1, "UnveilUint64"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, err := c.do(c.number)
			if c.want == "" {
				if err != nil || got < 0 {
					t.Errorf("%d gives %d, %v", c.number, got, err)
				}
				return
			}
			if got != 0 || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d gives %d, %v, want %q", c.number, got, err, c.want)
			}
			if !errors.Is(err, firn.ErrRange) && !errors.Is(err, veil.ErrVersion) {
				t.Errorf("%v matches no sentinel", err)
			}
		})
	}
	if got, err := wide.VeilUint64(1<<64 - 1); err != nil {
		t.Errorf("the veil of 2^64-1 is %d, %v", got, err)
	}
	if got, err := js.UnveilUint64(1 << 63); !errors.Is(err, firn.ErrRange) {
		t.Errorf("2^63 unveils as %d, %v in 53 bits", got, err)
	}
}

func TestAllInvalidSettingsAreNamed(t *testing.T) {
	one := keys(t, 16)
	same := []veil.Key{newKey(t, 1, make([]byte, 16)), newKey(t, 2, make([]byte, 16))}
	twice := []veil.Key{newKey(t, 1, make([]byte, 16)), newKey(t, 1, make([]byte, 24))}
	alike := []veil.Key{newKey(t, 1, make([]byte, 16)), newKey(t, 5, make([]byte, 24))}
	for _, c := range []struct {
		claim string
		cfg   veil.Config
		is    error // nil: an error about keys
		want  []string
	}{
		{"no key", veil.Config{}, nil, []string{"at least one is required"}},
		{"a zero key", veil.Config{Keys: []veil.Key{one[0], {}}, VersionBits: 1}, nil, []string{"Keys[1] is the zero Key"}},
		{"several keys without version bits", veil.Config{Keys: keys(t, 16, 16)}, nil,
			[]string{"2 keys require version bits"}},
		{"one key twice", veil.Config{Keys: same, VersionBits: 1}, nil, []string{"versions 1 and 2 have the same key"}},
		{"one version twice", veil.Config{Keys: twice, VersionBits: 1}, nil, []string{"two keys have version 1"}},
		{"versions with equal version bits", veil.Config{Keys: alike, VersionBits: 2}, nil,
			[]string{"versions 1 and 5 have the same 2 version bits"}},
		{"too narrow", veil.Config{Keys: one, Bits: 19}, firn.ErrRange, []string{"bits 19 is out of range: 20 to 64"}},
		{"too wide", veil.Config{Keys: one, Bits: 65}, firn.ErrRange, []string{"bits 65"}},
		{"negative", veil.Config{Keys: one, Bits: -1, VersionBits: -1}, firn.ErrRange, []string{"bits -1", "version bits -1"}},
		{"too little left", veil.Config{Keys: one, Bits: 21, VersionBits: 2}, firn.ErrRange, []string{"version bits 2 is out of range: 0 to 1"}},
		{"too many version bits", veil.Config{Keys: one, VersionBits: 9}, firn.ErrRange, []string{"0 to 8"}},
		{"everything", veil.Config{Bits: 5, VersionBits: 99, Namespace: strings.Repeat("o", 256)}, firn.ErrRange,
			[]string{"bits 5", "version bits 99", "length of the namespace 256", "at least one is required"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, err := veil.New(c.cfg)
			if got != nil || err == nil || c.is == nil && !aboutKeys(err) || c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("New = %v, %v, want %v", got, err, c.is)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want %q in it", err, want)
				}
			}
		})
	}
}

func TestACipherMayBeUsedConcurrently(t *testing.T) {
	c := newCipher(t, veil.Config{Keys: keys(t, 16, 32), VersionBits: 1})
	var group sync.WaitGroup
	for g := range firn.ID(8) {
		group.Go(func() {
			for i := range firn.ID(2000) {
				id := g<<32 | i
				veiled, err := c.Veil(id)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := c.Unveil(veiled); got != id || err != nil {
					t.Errorf("unveiled, the veil of %d is %d, %v", id, got, err)
					return
				}
			}
		})
	}
	group.Wait()
}

func FuzzVeilAndUnveil(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), uint64(1414362783486840832), 63, 0, "")
	f.Add([]byte("0123456789abcdef01234567"), uint64(1<<53-1), 53, 0, "orders")
	f.Add([]byte("0123456789abcdef0123456789abcdef"), uint64(1<<64-1), 64, 3, strings.Repeat("x", 16))
	f.Add([]byte("short"), uint64(0), 20, 8, "\xff")
	f.Fuzz(func(t *testing.T, material []byte, id uint64, bits, versionBits int, namespace string) {
		key, err := veil.NewKey(3, material)
		if err != nil {
			if !aboutKeys(err) {
				t.Fatal(err)
			}
			return
		}
		c, err := veil.New(veil.Config{Keys: []veil.Key{key}, Bits: bits, VersionBits: versionBits, Namespace: namespace})
		if err != nil {
			if !errors.Is(err, firn.ErrRange) {
				t.Fatal(err)
			}
			return
		}
		bits = cmp.Or(bits, 63)
		width := bits - versionBits
		veiled, err := c.VeilUint64(id)
		if fits := id>>width == 0; fits != (err == nil) {
			t.Fatalf("%v: the veil of %d is %d, %v", c, id, veiled, err)
		} else if !fits {
			return
		}
		if veiled>>bits != 0 {
			t.Fatalf("%v: the veil %d of %d is too wide", c, veiled, id)
		}
		if got, err := c.UnveilUint64(veiled); got != id || err != nil {
			t.Fatalf("%v: unveiled, the veil of %d is %d, %v", c, id, got, err)
		}
		general := newFF1(t, material, 2)
		if want := number(general.encrypt([]byte(namespace), numerals(id, width))); want != veiled&(1<<width-1) {
			t.Fatalf("%v: the veil of %d is %d, in the general form %d", c, id, veiled, want)
		}
	})
}

func TestVeilAndUnveilDoNotAllocate(t *testing.T) {
	c := newCipher(t, veil.Config{Keys: keys(t, 16, 32), VersionBits: 1})
	veiled, err := c.Veil(7)
	if err != nil {
		t.Fatal(err)
	}
	// Under the race detector sync.Pool drops values at random: then one allocation per call.
	if got := testing.AllocsPerRun(1000, func() { _, _ = c.Veil(7); _, _ = c.Unveil(veiled) }); got >= 1 {
		t.Errorf("Veil and Unveil allocate %v times", got)
	}
}

func TestWhichKeysRepeatVeils(t *testing.T) {
	of := func(versionBits, bits int, list ...veil.Key) *veil.Cipher {
		return newCipher(t, veil.Config{Keys: list, Bits: bits, VersionBits: versionBits, Namespace: "n"})
	}
	k := keys(t, 16, 16, 16)
	again := newKey(t, 1, bytes.Repeat([]byte{0x77}, 16))
	for name, c := range map[string]struct {
		before, now *veil.Cipher
		want        bool
	}{
		"none before":                 {nil, of(0, 53, k[0]), false},
		"the same":                    {of(0, 53, k[0]), of(0, 53, k[0]), false},
		"another":                     {of(0, 53, k[0]), of(0, 53, k[1]), true},
		"of the same version":         {of(1, 53, k[0]), of(1, 53, again), true},
		"beside":                      {of(1, 53, k[0]), of(1, 53, k[0], k[1]), false},
		"dropped":                     {of(1, 53, k[0], k[1]), of(1, 53, k[1]), false},
		"a version whose bits repeat": {of(1, 53, k[0], k[1]), of(1, 53, k[1], k[2]), true},
		"a version with unused bits":  {of(1, 53, k[1]), of(1, 53, k[1], k[2]), false},
		"another width":               {of(1, 53, k[0]), of(1, 54, k[0]), true},
		"another number of versions":  {of(1, 53, k[0]), of(2, 53, k[0]), true},
		"back to the key before that": {of(1, 53, k[0], k[1]), of(1, 53, k[0]), false},
	} {
		if got := c.now.Repeats(c.before); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
