// Package veil hides the order and number of ids behind a keyed permutation
// that can be undone with the key.
//
//	keys, err := veil.ParseKeys(text) // lines of VERSION:HEX, from a file or the environment
//	c, err := veil.New(veil.Config{Keys: keys, Namespace: "orders"})
//	veiled, err := c.Veil(id)
//	id, err = c.Unveil(veiled)
//
// A time-ordered id reveals when it was made and by which worker. Two ids reveal about how
// many were made in between. A veil is a number of the same width that reveals none of
// this, even to someone who has seen many veils. Nothing is stored: the veil of an id is
// FF1 of NIST SP 800-38G over its bits (radix 2, the namespace as tweak, AES with a key of
// 128, 192 or 256 bits). So two ids never share a veil, and FF1 in any other language can
// unveil it.
//
// When not to use it: a veil has these limits.
//
//   - Equal ids have equal veils, so an onlooker sees whether two veils are of the same id.
//   - A veil is not a signature: every number of its width unveils to some id, which most
//     likely does not exist. Look the id up and check the caller's rights, as without veils.
//   - Veils do not sort by time. Store ids and show veils.
//   - Anyone who has the key can unveil all ids.
//
// # Keys and rotation
//
// Keys have versions. The key with the greatest version veils; all keys unveil. With one
// key, all bits are the id's. Several keys require [Config.VersionBits]: so many top bits
// of a veil then identify its key, and ids must be narrower by as many bits. The
// version must be stored in the veil, since every number unveils under every key: a cipher
// that tried all keys would sometimes return a wrong id that looks right.
//
// Width, version bits and namespace must not change, or earlier veils become
// unreadable. So choose the version bits before you show the first veil. One bit allows
// two keys at a time and two bits allow four, for any number of rotations. Ids of the
// default layout fit beside one bit until 2059 and beside two until 2042.
//
// Two keys with equal version bits, or without version bits, may make the same veil of
// different ids: a veil that was shown under a dropped key may appear again.
// [Cipher.Repeats] reports whether that can happen. If the veiled ids come from a segment or a sequence, give
// its Config the cipher's [Cipher.Form]: the store then refuses such keys, in all processes.
//
// If the version is stored elsewhere (in a column, in the URL), use one [Cipher] for each
// key instead; then the version takes no bits.
package veil
