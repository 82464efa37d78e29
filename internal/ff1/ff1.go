// Package ff1 is the format-preserving encryption FF1 of NIST SP 800-38G in its
// general form: any radix, any length, any tweak.
//
// It follows the standard's algorithms 7 and 8 step by step, with integers of
// any size, and is slow. Package veil has a fast form for radix 2 and at most
// 64 bits. The tests of veil compare the fast form with this one; the tests of this
// package compare it with the samples that NIST published.
package ff1

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"
)

const (
	rounds    = 10
	minDomain = 1_000_000 // radix^length at least, as revision 1 of the standard asks
	maxRadix  = 1 << 16
)

// A Cipher encrypts strings of numerals of one radix under one key. It may be
// used concurrently.
type Cipher struct {
	block cipher.Block
	radix int64
}

// New returns a cipher for numerals from 0 to radix-1. It fails for a radix
// outside 2 to 65536 and for a key that does not have 16, 24 or 32 bytes.
func New(key []byte, radix int) (*Cipher, error) {
	if radix < 2 || radix > maxRadix {
		return nil, fmt.Errorf("ff1: radix %d: 2 to %d are allowed", radix, maxRadix)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("ff1: %w", err)
	}
	return &Cipher{block: block, radix: int64(radix)}, nil
}

// Encrypt is algorithm 7, FF1.Encrypt(K, T, X): it returns as many numerals as
// x has. It fails if a numeral is not below the radix, or if x is so short that
// there are fewer than a million strings of its length.
func (c *Cipher) Encrypt(tweak []byte, x []uint16) ([]uint16, error) {
	f, err := c.split(tweak, x)
	if err != nil {
		return nil, err
	}
	for i := range rounds {
		y := f.y(i, f.b)
		sum := y.Add(y, f.a)
		f.a, f.b = f.b, sum.Mod(sum, f.modulus[i&1])
	}
	return f.join(), nil
}

// Decrypt is algorithm 8, FF1.Decrypt(K, T, X), the inverse of Encrypt, with
// the same errors.
func (c *Cipher) Decrypt(tweak []byte, x []uint16) ([]uint16, error) {
	f, err := c.split(tweak, x)
	if err != nil {
		return nil, err
	}
	for i := rounds - 1; i >= 0; i-- {
		y := f.y(i, f.a)
		difference := y.Sub(f.b, y)
		f.b, f.a = f.a, difference.Mod(difference, f.modulus[i&1]) // Mod is never negative
	}
	return f.join(), nil
}

// feistel is the state of the two algorithms, in the standard's letters.
type feistel struct {
	c       *Cipher
	tweak   []byte
	u, v    int         // numerals in the left and the right half
	a, b    *big.Int    // the halves, as numbers
	modulus [2]*big.Int // radix^u and radix^v
	bytes   int         // b in the standard: bytes that hold the right half
	d       int         // bytes of y
	p       [16]byte
}

// split is steps 1 to 5, which both algorithms share.
func (c *Cipher) split(tweak []byte, x []uint16) (*feistel, error) {
	n := len(x)
	for i, numeral := range x {
		if int64(numeral) >= c.radix {
			return nil, fmt.Errorf("ff1: numeral %d at index %d: 0 to %d are allowed", numeral, i, c.radix-1)
		}
	}
	f := &feistel{c: c, tweak: tweak, u: n / 2, v: n - n/2}
	f.a, f.b = c.number(x[:f.u]), c.number(x[f.u:])
	f.modulus = [2]*big.Int{c.power(f.u), c.power(f.v)}
	if domain := new(big.Int).Mul(f.modulus[0], f.modulus[1]); domain.Cmp(big.NewInt(minDomain)) < 0 {
		return nil, fmt.Errorf("ff1: %d numerals of radix %d: only %v strings, at least %d are required",
			n, c.radix, domain, minDomain)
	}
	bits := new(big.Int).Sub(f.modulus[1], big.NewInt(1)).BitLen() // ⌈v·log2(radix)⌉, exactly
	f.bytes = (bits + 7) / 8
	f.d = 4*((f.bytes+3)/4) + 4
	f.p = [16]byte{1, 2, 1, byte(c.radix >> 16), byte(c.radix >> 8), byte(c.radix), rounds, byte(f.u)}
	binary.BigEndian.PutUint32(f.p[8:], uint32(n))
	binary.BigEndian.PutUint32(f.p[12:], uint32(len(tweak)))
	return f, nil
}

// y is steps 6.i to 6.iv: the round's number from one half.
func (f *feistel) y(round int, half *big.Int) *big.Int {
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
func (f *feistel) join() []uint16 {
	return append(f.c.numerals(f.a, f.u), f.c.numerals(f.b, f.v)...)
}

// number is NUM of the standard, numerals its inverse STR.
func (c *Cipher) number(x []uint16) *big.Int {
	n, radix := new(big.Int), big.NewInt(c.radix)
	for _, numeral := range x {
		n.Add(n.Mul(n, radix), big.NewInt(int64(numeral)))
	}
	return n
}

func (c *Cipher) numerals(number *big.Int, length int) []uint16 {
	x, n, digit, radix := make([]uint16, length), new(big.Int).Set(number), new(big.Int), big.NewInt(c.radix)
	for i := length - 1; i >= 0; i-- {
		n.DivMod(n, radix, digit)
		x[i] = uint16(digit.Uint64())
	}
	return x
}

func (c *Cipher) power(exponent int) *big.Int {
	return new(big.Int).Exp(big.NewInt(c.radix), big.NewInt(int64(exponent)), nil)
}
