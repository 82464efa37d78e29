package prefixed_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/firn-id/firn/objectid"
	"github.com/firn-id/firn/prefixed"
)

func Example() {
	orders, err := prefixed.New("ord")
	if err != nil {
		log.Fatal(err)
	}
	text := orders.ID(1414362783486840832)
	fmt.Println(text)

	id, err := orders.ParseID(text)
	fmt.Println(id, err)

	_, err = orders.ParseID("usr_1786KEMYM8400")
	fmt.Println(err)
	// Output:
	// ord_1786KEMYM8400
	// 1414362783486840832 <nil>
	// "usr_1786KEMYM8400" is not a valid id with the prefix ord: its prefix is "usr", expected "ord"
}

// Write an id of MongoDB, and read a TypeID.
func ExamplePrefix_Bytes() {
	docs, err := prefixed.New("doc")
	if err != nil {
		log.Fatal(err)
	}
	id, err := objectid.Parse("507f191e810c19729de860ea")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(docs.Bytes(id[:]))

	users, err := prefixed.New("prefix")
	if err != nil {
		log.Fatal(err)
	}
	uuid, err := users.ParseBytes("prefix_01h455vb4pex5vsknk084sn02q", 16)
	fmt.Printf("%x %v\n", uuid, err)
	// Output:
	// doc_0M3Z34F8230SEAEYGR7A
	// 01890a5dac96774bbcceb302099a8057 <nil>
}

type invoice struct{}

func (invoice) Prefix() string { return "inv" }

// A field that has a prefix in JSON and is a BIGINT in the database.
func ExampleID() {
	type row struct {
		ID prefixed.ID[invoice] `json:"id"`
	}
	text, err := json.Marshal(row{ID: 1414362783486840832})
	fmt.Println(string(text), err)

	var got row
	err = json.Unmarshal([]byte(`{"id":"ord_1786KEMYM8400"}`), &got)
	fmt.Println(err)
	// Output:
	// {"id":"inv_1786KEMYM8400"} <nil>
	// "ord_1786KEMYM8400" is not a valid id with the prefix inv: its prefix is "ord", expected "inv"
}
