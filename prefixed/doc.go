// Package prefixed writes ids with a prefix that says what they are of, as in
// ord_1786KEMYM8400, so that an order's id is not taken for a user's.
//
//	orders, err := prefixed.New("ord")
//	text := orders.ID(id)
//	id, err = orders.ParseID(text)
//
// What follows the prefix and an underscore is Crockford's base32 of a fixed
// width: 13 characters for a [firn.ID], 20 for the twelve bytes of an object id,
// 26 for the 16 of a UUID, where it is the text of a ULID. Texts of one prefix
// and one width sort as the ids do. Letters are written in upper case and read in
// either, so that a TypeID (github.com/jetify-com/typeid) can be read, and is written
// by strings.ToLower.
//
// A field of a struct that should be so in JSON by itself is an [ID] of a
// [Kind]; see there.
//
// When not to use it: for what is stored or compared, where the number is
// shorter. Prefixes are for people, logs and interfaces.
package prefixed
