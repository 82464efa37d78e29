package veil_test

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
)

const ff1Rounds = 10

// ff1 is FF1 of NIST SP 800-38G in its general form: any radix, any length, any tweak. It
// follows the standard's algorithms 7 and 8 step by step, with integers of any size, and is
// slow. The samples that NIST published check it, and it checks package veil.
type ff1 struct {
	block cipher.Block
	radix int64
}

func newFF1(t testing.TB, key []byte, radix int) *ff1 {
	t.Helper()
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	return &ff1{block: block, radix: int64(radix)}
}

// encrypt is algorithm 7, FF1.Encrypt(K, T, X): it returns as many numerals as x has.
func (c *ff1) encrypt(tweak []byte, x []uint16) []uint16 {
	f := c.split(tweak, x)
	for i := range ff1Rounds {
		y := f.y(i, f.b)
		sum := y.Add(y, f.a)
		f.a, f.b = f.b, sum.Mod(sum, f.modulus[i&1])
	}
	return f.join()
}

// decrypt is algorithm 8, FF1.Decrypt(K, T, X), the inverse of encrypt.
func (c *ff1) decrypt(tweak []byte, x []uint16) []uint16 {
	f := c.split(tweak, x)
	for i := ff1Rounds - 1; i >= 0; i-- {
		y := f.y(i, f.a)
		difference := y.Sub(f.b, y)
		f.b, f.a = f.a, difference.Mod(difference, f.modulus[i&1]) // Mod is never negative
	}
	return f.join()
}

// ff1Halves is the state of the two algorithms, in the standard's letters.
type ff1Halves struct {
	c       *ff1
	tweak   []byte
	u, v    int         // numerals in the left and the right half
	a, b    *big.Int    // the halves, as numbers
	modulus [2]*big.Int // radix^u and radix^v
	bytes   int         // b in the standard: bytes that hold the right half
	d       int         // bytes of y
	p       [16]byte
}

// split is steps 1 to 5, which both algorithms share.
func (c *ff1) split(tweak []byte, x []uint16) *ff1Halves {
	n := len(x)
	f := &ff1Halves{c: c, tweak: tweak, u: n / 2, v: n - n/2}
	f.a, f.b = c.number(x[:f.u]), c.number(x[f.u:])
	f.modulus = [2]*big.Int{c.power(f.u), c.power(f.v)}
	bits := new(big.Int).Sub(f.modulus[1], big.NewInt(1)).BitLen() // ⌈v·log2(radix)⌉, exactly
	f.bytes = (bits + 7) / 8
	f.d = 4*((f.bytes+3)/4) + 4
	f.p = [16]byte{1, 2, 1, byte(c.radix >> 16), byte(c.radix >> 8), byte(c.radix), ff1Rounds, byte(f.u)}
	binary.BigEndian.PutUint32(f.p[8:], uint32(n))
	binary.BigEndian.PutUint32(f.p[12:], uint32(len(tweak)))
	return f
}

// y is steps 6.i to 6.iv: the round's number from one half.
func (f *ff1Halves) y(round int, half *big.Int) *big.Int {
	pad := (-len(f.tweak)-f.bytes-1)%16 + 16
	q := slices.Concat(f.p[:], f.tweak, make([]byte, pad%16), []byte{byte(round)}, half.FillBytes(make([]byte, f.bytes)))
	r := make([]byte, 16)
	for ; len(q) > 0; q = q[16:] { // PRF, algorithm 6: CBC-MAC
		for i := range r {
			r[i] ^= q[i]
		}
		f.c.block.Encrypt(r, r)
	}
	s := slices.Clone(r)
	for j := uint64(1); len(s) < f.d; j++ {
		next := slices.Clone(r)
		binary.BigEndian.PutUint64(next[8:], binary.BigEndian.Uint64(next[8:])^j)
		f.c.block.Encrypt(next, next)
		s = append(s, next...)
	}
	return new(big.Int).SetBytes(s[:f.d])
}

// join is the last step: A || B.
func (f *ff1Halves) join() []uint16 {
	return append(f.c.numerals(f.a, f.u), f.c.numerals(f.b, f.v)...)
}

// number is NUM of the standard, numerals its inverse STR.
func (c *ff1) number(x []uint16) *big.Int {
	n, radix := new(big.Int), big.NewInt(c.radix)
	for _, numeral := range x {
		n.Add(n.Mul(n, radix), big.NewInt(int64(numeral)))
	}
	return n
}

func (c *ff1) numerals(number *big.Int, length int) []uint16 {
	x, n, digit, radix := make([]uint16, length), new(big.Int).Set(number), new(big.Int), big.NewInt(c.radix)
	for i := length - 1; i >= 0; i-- {
		n.DivMod(n, radix, digit)
		x[i] = uint16(digit.Uint64())
	}
	return x
}

func (c *ff1) power(exponent int) *big.Int {
	return new(big.Int).Exp(big.NewInt(c.radix), big.NewInt(int64(exponent)), nil)
}

const alphabet36 = "0123456789abcdefghijklmnopqrstuvwxyz"

// TestTheGeneralFormGivesThePublishedSamples checks the reference of the tests of veil.
func TestTheGeneralFormGivesThePublishedSamples(t *testing.T) {
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
			c := newFF1(t, key, v.Radix)
			alphabet := v.Alphabet
			if alphabet == "" {
				alphabet = alphabet36
			}
			got := c.encrypt(tweak, digits(alphabet, v.Plain))
			if text(alphabet, got) != v.Cipher {
				t.Errorf("%s %d: Encrypt(%s) = %s, want %s", set, i+1, v.Plain, text(alphabet, got), v.Cipher)
			}
			got = c.decrypt(tweak, digits(alphabet, v.Cipher))
			if text(alphabet, got) != v.Plain {
				t.Errorf("%s %d: Decrypt(%s) = %s, want %s", set, i+1, v.Cipher, text(alphabet, got), v.Plain)
			}
		}
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

func digits(alphabet, s string) []uint16 {
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
