// Package veil hides the order and number of ids behind a keyed permutation
// that can be undone with the key.
//
//	keys, err := veil.ParseKeys(text) // lines of VERSION:HEX, from a file or the environment
//	c, err := veil.New(veil.Config{Keys: keys, Namespace: "orders"})
//	veiled, err := c.Veil(id)
//	id, err = c.Unveil(veiled)
//
// A time-ordered id tells whoever sees it when it was made and by which worker,
// and two of them how many were made in between. A veil is a number of the same
// width that tells none of this, and neither do many of them. Nothing is stored:
// the veil of an id is FF1 of NIST SP 800-38G over its bits (radix 2, the
// namespace as tweak, AES with a key of 128, 192 or 256 bits). So two ids never
// share a veil, and FF1 in any other language reads it.
//
// What it does not do. Equal ids have equal veils: whoever sees two knows
// whether they are the same. A veil is no signature: every number of its width
// unveils into some id, which most likely does not exist; look it up and check
// the caller's rights, as without veils. Veils do not sort by time: store ids,
// show veils. Whoever has the key has the ids.
//
// # Keys and rotation
//
// Keys have versions; the greatest veils, every one unveils. With one key all
// bits are the id's. More than one need [Config.VersionBits]: that many top bits
// of a veil then say which key made it, and ids must be that much narrower.
// Nothing else in a number of fixed width could say so, since every number
// unveils under every key; to try them in turn would now and then return a wrong
// id that looks right.
//
// Width, version bits and namespace are part of what a veil means, and changing
// one makes earlier veils unreadable. So decide about version bits before the
// first veil is shown. One bit allows two keys at a time, two allow four, for
// any number of rotations; ids of the default layout fit beside one bit until
// 2059 and beside two until 2042.
//
// Two keys with the same version bits, or without any, may make one veil of two ids: what was shown
// under a key that was dropped may come again. [Cipher.Repeats] tells.
//
// Where something else tells the version (a column, a part of the URL), make
// one [Cipher] for each key instead; then no bits are lost.
package veil
