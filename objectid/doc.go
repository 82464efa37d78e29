// Package objectid makes and reads the 12-byte ids of MongoDB: four bytes of
// Unix seconds, five bytes that are one generator's own, and a three-byte
// counter that begins at random, all big-endian.
//
//	g, err := objectid.New(objectid.Config{})
//	id, err := g.Next(ctx)
//	fmt.Println(id, id.Time())
//
// The historic form has three bytes of machine and two of process id in place
// of the five: see [Historic]. An [ID] is an array of bytes, as the type of the
// MongoDB driver is, so that one converts to the other: bson.ObjectID(id).
//
// What the package assumes and cannot check: that no two generators have the
// same five bytes. Drawn at random, as is the default, two of n generators do
// with a probability of about n²/2⁴¹: one in two million for a thousand.
// Such a pair makes equal ids only if their counters meet in one second.
//
// When not to use it: where eight bytes do, for ids that must not tell when
// they were made, and where a collision must be impossible and not unlikely.
// For these lease a worker and make a firn.ID.
//
// The format is that of the MongoDB manual (ObjectId) and the BSON
// specification, type 0x07.
package objectid
