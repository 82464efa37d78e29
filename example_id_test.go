package firn_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/firn-id/firn"
)

func ExampleEncoding() {
	id := firn.ID(1414362783486840832)
	for e := firn.Decimal; e <= firn.Base64URL; e++ {
		fmt.Printf("%-9v  %s\n", e, e.Fixed(id))
	}
	// Output:
	// decimal    1414362783486840832
	// hex        13a0d3753d441000
	// base32     1786KEMYM8400
	// base36     0aqudrgub5v5s
	// base58     4HRGSz9vBsV
	// base62     1gTnNx2jyQi
	// base64     0DVorJxG0--
	// base64url  E6DTdT1EEAA
}

// Write an id as a short text for a URL, and read it back.
func ExampleEncoding_Compact() {
	text := firn.Base58.Compact(1414362783486840832)
	fmt.Println("/orders/" + text)

	id, err := firn.Base58.Parse(text)
	fmt.Println(id, err)

	_, err = firn.Base58.Parse("4PQnO")
	fmt.Println(err)
	// Output:
	// /orders/4HRGSz9vBsV
	// 1414362783486840832 <nil>
	// "4PQnO" is not a valid base58 id: 'O' at position 5 is not in its alphabet
}

// Ids are strings in JSON, which JavaScript reads exactly. Strings and numbers are
// accepted.
func ExampleID_MarshalJSON() {
	type order struct {
		ID     firn.ID  `json:"id"`
		Parent *firn.ID `json:"parent,omitempty"`
		Total  int      `json:"total"`
	}
	text, err := json.Marshal(order{ID: 1414362783486840832, Total: 1250})
	fmt.Println(string(text), err)

	var got order
	err = json.Unmarshal([]byte(`{"id":"1414362783486840832","parent":1414362783486840001,"total":3}`), &got)
	fmt.Println(got.ID, *got.Parent, err)

	err = json.Unmarshal([]byte(`{"id":1.41436278348684e18}`), &got)
	fmt.Println(err)
	// Output:
	// {"id":"1414362783486840832","total":1250} <nil>
	// 1414362783486840832 1414362783486840001 <nil>
	// "1.41436278348684e18" is not a valid id in JSON: it has a fraction or an exponent; a whole number from 0 to 9223372036854775807 is allowed, as a string or a number
}

// To decode an id, use the layout it was made with.
func ExampleID_Time() {
	layout, err := firn.ParseLayout("classic")
	if err != nil {
		fmt.Println(err)
		return
	}
	id := firn.ID(1414362783486840832)
	parts, err := layout.Decompose(id)
	fmt.Println(id.Time(layout).Format(time.RFC3339Nano), parts.Datacenter, parts.Worker, parts.Sequence, err)
	// Output: 2021-06-17T13:32:45.173Z 2 1 0 <nil>
}
