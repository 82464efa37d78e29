package objectid_test

import (
	"context"
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
	fmt.Println(len(a.String()), a.String() < b.String())
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
