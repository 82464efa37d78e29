package firn

import (
	"encoding/binary"
	"strconv"
)

// Fixed returns the form with leading zeros, [Encoding.Width] characters.
//
// A negative id, which no generator makes, has no text in any encoding: Fixed, Compact
// and their Append forms return "negative(-5)", which no Parse reads. The exception
// is the compact decimal form, -5; [Decimal] refuses to read it back.
func (e Encoding) Fixed(id ID) string {
	var buf form
	if i := e.write(&buf, id); i >= 0 {
		return string(buf[i:])
	}
	return string(e.appendOdd(nil, id, false))
}

// Compact returns the form without leading zeros, a single zero digit for the
// id 0. In [Base64URL] it is what Fixed returns.
func (e Encoding) Compact(id ID) string {
	var buf form
	if i := e.write(&buf, id); i >= 0 {
		return string(buf[e.significant(&buf, i):])
	}
	return string(e.appendOdd(nil, id, true))
}

// AppendFixed appends what Fixed returns to dst, and does not allocate when
// dst has room.
func (e Encoding) AppendFixed(dst []byte, id ID) []byte {
	var buf form
	if i := e.write(&buf, id); i >= 0 {
		return append(dst, buf[i:]...)
	}
	return e.appendOdd(dst, id, false)
}

// AppendCompact appends what Compact returns to dst, and does not allocate when
// dst has room.
func (e Encoding) AppendCompact(dst []byte, id ID) []byte {
	var buf form
	if i := e.write(&buf, id); i >= 0 {
		return append(dst, buf[e.significant(&buf, i):]...)
	}
	return e.appendOdd(dst, id, true)
}

// form has room for the widest form, which is written at its end.
type form [64]byte

// significant returns where the compact form begins when the fixed one begins at i.
func (e Encoding) significant(buf *form, i int) int {
	if e == Base64URL { // a leading A is part of the bytes, not a leading zero
		return i
	}
	for zero := schemes[e].digits[0]; i < len(buf)-1 && buf[i] == zero; {
		i++
	}
	return i
}

// write puts the fixed-width form at the end of buf and returns where it
// begins, or -1 for a negative id or an invalid encoding.
//
// Most of the cost is the chain of divisions, each of which waits for the one before. So a
// number is first cut into parts of four digits, which the processor works on in parallel, and those
// into pairs, which are looked up. A constant radix lets the compiler turn divisions into multiplications.
func (e Encoding) write(buf *form, id ID) int {
	if id < 0 {
		return -1
	}
	u := uint64(id)
	switch e {
	case Decimal:
		write10(buf, u)
		return 45
	case Hex:
		shifts(buf[48:], u, 4, digits36)
		return 48
	case Base32:
		shifts(buf[51:], u, 5, digits32)
		return 51
	case Base36:
		write36(buf, u)
		return 51
	case Base58:
		write58(buf, u)
		return 53
	case Base62:
		write62(buf, u)
		return 53
	case Base64:
		shifts(buf[53:], u, 6, digits64)
		return 53
	case Base64URL:
		// Eleven characters hold 66 bits: the 64 bits of the bytes, then two zero bits.
		buf[63] = digits64URL[u<<2&63]
		shifts(buf[53:63], u>>4, 6, digits64URL)
		return 53
	case Base2:
		shifts(buf[1:], u, 1, "01")
		return 1
	}
	return -1
}

func write10(buf *form, u uint64) {
	const part = 1e8
	high := u / part
	top := uint32(high / part)
	buf[45] = '0' + byte(top/100)
	buf[46] = '0' + byte(top/10%10)
	buf[47] = '0' + byte(top%10)
	binary.LittleEndian.PutUint64(buf[48:], eight(uint32(high%part)))
	binary.LittleEndian.PutUint64(buf[56:], eight(uint32(u%part)))
}

// eight returns the eight decimal digits of n < 10^8 as characters, the first
// in the lowest byte. It splits the number into halves three times, and works on all
// parts of a word at once. The reciprocals 5243/2^19 of 100 and 103/2^10 of 10 are
// exact below 10^4 and 10^2; a test tries every number.
func eight(n uint32) uint64 {
	fours := uint64(n/1e4) | uint64(n%1e4)<<32
	hundreds := fours * 5243 >> 19 & 0x0000007f_0000007f
	twos := hundreds | (fours-hundreds*100)<<16
	tens := twos * 103 >> 10 & 0x000f_000f_000f_000f
	return tens | (twos-tens*10)<<8 + 0x30303030_30303030
}

const (
	square36, fourth36 = 36 * 36, 36 * 36 * 36 * 36
	square58, fourth58 = 58 * 58, 58 * 58 * 58 * 58
	square62, fourth62 = 62 * 62, 62 * 62 * 62 * 62
)

func write36(buf *form, u uint64) {
	high := u / fourth36
	top := uint32(high / fourth36)
	buf[51] = digits36[top/fourth36]
	four(buf[52:56], top%fourth36, square36, pairs36)
	four(buf[56:60], uint32(high%fourth36), square36, pairs36)
	four(buf[60:], uint32(u%fourth36), square36, pairs36)
}

func write58(buf *form, u uint64) {
	high := u / fourth58
	top := uint32(high / fourth58)
	buf[53] = digits58[top/square58]
	binary.LittleEndian.PutUint16(buf[54:], pairs58[top%square58])
	four(buf[56:60], uint32(high%fourth58), square58, pairs58)
	four(buf[60:], uint32(u%fourth58), square58, pairs58)
}

func write62(buf *form, u uint64) {
	high := u / fourth62
	top := uint32(high / fourth62)
	buf[53] = digits62[top/square62]
	binary.LittleEndian.PutUint16(buf[54:], pairs62[top%square62])
	four(buf[56:60], uint32(high%fourth62), square62, pairs62)
	four(buf[60:], uint32(u%fourth62), square62, pairs62)
}

// four puts four digits of n into buf, of a radix whose square is given. It is small enough to be
// inlined, which makes square a constant to the compiler.
func four(buf []byte, n, square uint32, pairs []uint16) {
	binary.LittleEndian.PutUint16(buf, pairs[n/square])
	binary.LittleEndian.PutUint16(buf[2:], pairs[n%square])
}

// The two characters of each number of two digits, the first in the low byte: 17 KiB.
var pairs36, pairs58, pairs62 = pairs(digits36), pairs(digits58), pairs(digits62)

func pairs(digits string) []uint16 {
	all := make([]uint16, 0, len(digits)*len(digits))
	for _, high := range []byte(digits) {
		for _, low := range []byte(digits) {
			all = append(all, uint16(high)|uint16(low)<<8)
		}
	}
	return all
}

// shifts fills buf with the low digits of u, of a radix of 1<<bits.
func shifts(buf []byte, u uint64, bits uint, digits string) {
	for i := len(buf) - 1; i >= 0; i-- {
		buf[i] = digits[u&(1<<bits-1)]
		u >>= bits
	}
}

// appendOdd appends the text for a negative id or an invalid encoding.
func (e Encoding) appendOdd(dst []byte, id ID, compact bool) []byte {
	if e >= encodings {
		dst = append(dst, "encoding("...)
		return append(strconv.AppendUint(dst, uint64(e), 10), ')')
	}
	if e == Decimal && compact {
		return strconv.AppendInt(dst, int64(id), 10)
	}
	dst = append(dst, "negative("...)
	return append(strconv.AppendInt(dst, int64(id), 10), ')')
}
