package objectid_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"

	"github.com/firn-id/firn/objectid"
)

func Example() {
	g, err := objectid.New(objectid.Config{})
	if err != nil {
		log.Fatal(err)
	}
	a, err := g.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	b, err := g.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(a.String()), a.Compare(b) < 0)
	// Output: 24 true
}

func ExampleParse() {
	id, err := objectid.Parse("507f191e810c19729de860ea")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id.Time(), id.Parts().Counter)

	_, err = objectid.Parse("507f191e810c19729de860")
	fmt.Println(err)
	// Output:
	// 2012-10-17 20:46:22 +0000 UTC 15229162
	// "507f191e810c19729de860" is not a valid object id: it has 22 digits, an object id has 24
}

// Make the five bytes of a machine and a process, as in the historic form.
func ExampleHistoric() {
	id, err := objectid.Parse("5c4a7fcc0ed0240001a79289")
	if err != nil {
		log.Fatal(err)
	}
	machine, process := [3]byte(id[4:7]), binary.BigEndian.Uint16(id[7:9])
	fmt.Printf("%x %d %x\n", machine, process, objectid.Historic(machine, process))
	// Output: 0ed024 1 0ed0240001
}
