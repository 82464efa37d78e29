// Package objectid makes and reads the 12-byte ids of MongoDB: four bytes of
// Unix seconds, five bytes that are unique to the generator, and a three-byte
// counter that starts at a random number, all big-endian.
//
//	g, err := objectid.New(objectid.Config{})
//	id, err := g.Next(ctx)
//	fmt.Println(id, id.Time())
//
// Until 2018 the five bytes were three of the machine and the low two of the process id,
// which [Config.Unique] can have too. An [ID] is an array of bytes, like the type of the MongoDB
// driver, so that one converts to the other: bson.ObjectID(id).
//
// The package assumes, and cannot check, that no two generators have the same five
// bytes. By default they are random: among n generators some two have equal bytes with a
// probability of about n²/2⁴¹, one in two million for a thousand generators. Such a
// pair makes equal ids only if their counters are equal in the same second.
//
// When not to use it: where eight bytes suffice, or where a collision must be
// impossible, not just unlikely; use a [firn.ID] with a leased worker (package lease).
// Do not use it for ids that must not reveal when they were made.
//
// The format is defined by the MongoDB manual (ObjectId) and the BSON specification,
// type 0x07.
package objectid
