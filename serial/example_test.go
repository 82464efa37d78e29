package serial_test

import (
	"fmt"
	"log"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/serial"
)

func Example() {
	layout, err := firn.ParseLayout("classic")
	if err != nil {
		log.Fatal(err)
	}
	f, err := serial.New(serial.Config{Layout: layout, Check: serial.Mod97})
	if err != nil {
		log.Fatal(err)
	}
	text, err := f.Text(1414362783486840832)
	fmt.Println(text, err)

	id, err := f.Parse(text)
	fmt.Println(id, err)

	_, err = f.Parse("20210617133245173000000201000053")
	fmt.Println(err)
	// Output:
	// 20210617133245173000000201000035 <nil>
	// 1414362783486840832 <nil>
	// "20210617133245173000000201000053" is not a valid serial: its mod97 check is 53, its digits require 35: a digit is wrong, or two are swapped
}

// Local time, for users who all live eight hours east of Greenwich.
func ExampleFormat_Parts() {
	layout, err := firn.ParseLayout("classic")
	if err != nil {
		log.Fatal(err)
	}
	f, err := serial.New(serial.Config{Layout: layout, Prefix: "PAY", Zone: time.FixedZone("UTC+8", 8*60*60)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f)
	p, err := f.Parts("PAY20210617213245173000002010000")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Time.Format(time.RFC3339Nano), p.Datacenter, p.Worker, p.Sequence)
	// Output:
	// PAYyyyyMMddHHmmssSSS0000ddwwssss
	// 2021-06-17T21:32:45.173+08:00 2 1 0
}
