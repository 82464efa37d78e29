// Package serial writes ids as long decimal numbers that people read, type and
// print, such as the 32 digits of a payment:
//
//	f, err := serial.New(serial.Config{Layout: layout, Check: serial.Mod97})
//	text, err := f.Text(id)
//	id, err = f.Parse(text)
//
// A serial begins with the time, yyyyMMddHHmmssSSS. The other fields of the id follow,
// each padded with zeros to the digits of its greatest value:
//
//	20261120141503123 0000000 0017 0042      layout 41/0/10/12, here with spaces
//	time              fill    worker sequence
//
// A serial is another form of the id, from which the id can be read back. So serials are
// as unique as ids; they have no random part that could collide. They sort as the ids do,
// since the fields are in the layout's order.
//
// When not to use it: where a number must not reveal when it was made, by which
// worker, or how many numbers there are.
package serial
