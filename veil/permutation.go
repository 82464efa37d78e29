package veil

import (
	"crypto/cipher"
	"encoding/binary"
	"sync"
)

const (
	leastBits = 20 // 2^20 is the first power of two above the million that SP 800-38G rev. 1 asks for
	mostBits  = 64
	rounds    = 10
)

// A permutation is FF1 under one key and one tweak, for numbers of one width
// from 20 to 64 bits as strings of binary numerals, the highest first.
//
// It is fast because most of the work is done once. In each round FF1 computes a CBC-MAC of
// the parameters (one block), the tweak, and a last block with the round's number and one
// half. All blocks but the last are the same for each id, so their chaining value is
// computed once and a round costs a single AES. A half has at most 32 bits, so y is the
// first 8 bytes of the MAC, and modulo a power of two is a mask. So there are no divisions
// and no big integers.
type permutation struct {
	block       cipher.Block
	high, low   uint64 // the last block without round and half, with the chaining value
	round       uint   // the position of the round's number in low, in bits
	split       uint   // bits of the right half, v in the standard
	left, right uint64 // masks of the halves
}

// newPermutation expects a width that New has checked.
func newPermutation(block cipher.Block, bits int, tweak []byte) permutation {
	u, v := bits/2, bits-bits/2
	bytes := (v + 7) / 8 // b in the standard: 2 to 4

	parameters := [16]byte{1, 2, 1, 0, 0, 2, rounds, byte(u), 11: byte(bits)}
	binary.BigEndian.PutUint32(parameters[12:], uint32(len(tweak)))
	constant := append(parameters[:], tweak...)
	for (len(constant)+1+bytes)%16 != 0 {
		constant = append(constant, 0)
	}
	constant = append(constant, make([]byte, 1+bytes)...)

	chain := make([]byte, 16)
	for ; len(constant) > 16; constant = constant[16:] {
		for i := range chain {
			chain[i] ^= constant[i]
		}
		block.Encrypt(chain, chain)
	}
	return permutation{
		block: block,
		high:  binary.BigEndian.Uint64(chain) ^ binary.BigEndian.Uint64(constant),
		low:   binary.BigEndian.Uint64(chain[8:]) ^ binary.BigEndian.Uint64(constant[8:]),
		round: uint(8 * bytes),
		split: uint(v),
		left:  1<<u - 1,
		right: 1<<v - 1,
	}
}

// equal reports whether both have the same key and tweak. It compares the 128-bit chaining
// values.
func (p *permutation) equal(q *permutation) bool { return p.high == q.high && p.low == q.low }

// blocks reuses AES blocks. Without it each id would allocate one, since the block is
// passed through the interface cipher.Block.
var blocks = sync.Pool{New: func() any { return new([16]byte) }}

// veil is FF1.Encrypt of n, which must fit the width.
func (p *permutation) veil(n uint64) uint64 {
	room, _ := blocks.Get().(*[16]byte)
	a, b := n>>p.split, n&p.right
	for i := uint64(0); i < rounds; i += 2 { // two rounds, so that the halves need not be swapped
		a = (a + p.y(room, i, b)) & p.left
		b = (b + p.y(room, i+1, a)) & p.right
	}
	blocks.Put(room)
	return a<<p.split | b
}

// unveil is FF1.Decrypt of n, which must fit the width.
func (p *permutation) unveil(n uint64) uint64 {
	room, _ := blocks.Get().(*[16]byte)
	a, b := n>>p.split, n&p.right
	for i := uint64(rounds); i > 0; i -= 2 {
		b = (b - p.y(room, i-1, a)) & p.right
		a = (a - p.y(room, i-2, b)) & p.left
	}
	blocks.Put(room)
	return a<<p.split | b
}

// y computes steps 6.i to 6.iv of the standard, modulo 2^64.
func (p *permutation) y(room *[16]byte, round, half uint64) uint64 {
	binary.BigEndian.PutUint64(room[:8], p.high)
	binary.BigEndian.PutUint64(room[8:], p.low^(round<<p.round|half))
	p.block.Encrypt(room[:], room[:])
	return binary.BigEndian.Uint64(room[:8])
}
