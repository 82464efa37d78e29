// Package prefixed writes ids with a prefix that names their kind, such as
// ord_1786KEMYM8400, so that an order's id is not mistaken for a user's.
//
//	orders, err := prefixed.New("ord")
//	text := orders.ID(id)
//	id, err = orders.ParseID(text)
//
// After the prefix and an underscore comes Crockford's base32 in a fixed width: 13
// characters for a [firn.ID], 20 for the twelve bytes of an object id, 26 for the 16
// bytes of a UUID, where it is the text of a ULID. Texts with equal prefixes and widths
// sort as the ids do. The 13 characters are written in upper case and read in either case; the prefix is in lower case. So the
// package reads a TypeID (github.com/jetify-com/typeid); to write one, use
// strings.ToLower.
//
// The type [ID] of a [Kind] has the prefix in JSON without further code.
//
// When not to use it: for ids that are only stored or compared, where the number is
// shorter. Prefixes are for people, logs and APIs.
package prefixed
