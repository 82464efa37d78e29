// Package serial writes ids as long decimal numbers that people read, type and
// print, such as the 32 digits of a payment:
//
//	f, err := serial.New(serial.Config{Layout: layout, Check: serial.Mod97})
//	text, err := f.Text(id)
//	id, err = f.Parse(text)
//
// A serial begins with the time, yyyyMMddHHmmssSSS, and goes on with the rest of
// the id's fields, each padded with zeros to the digits of its greatest value:
//
//	20261120141503123 0000000 0017 0042      layout 41/0/10/12, here with spaces
//	time              fill    worker sequence
//
// It is the id written in another way, reversibly: two serials are equal
// exactly when their ids are, so that serials are as unique as ids, without a
// random part that could collide and be drawn again. They sort as the ids do,
// in every layout, since the fields stand in the layout's own order.
//
// When not to use it: where a number must not tell when it was made, by which
// worker, or how many there are.
package serial
