package objectid_test

import (
	"testing"

	"github.com/firn-id/firn/objectid"
)

func TestACopyOfAGeneratorGoesOnWhereTheOriginalIs(t *testing.T) {
	g, err := objectid.New(objectid.Config{})
	if err != nil {
		t.Fatal(err)
	}
	other := *g
	seen := map[objectid.ID]bool{}
	for range 1000 {
		for _, of := range []*objectid.Generator{g, &other} {
			id, err := of.Next(t.Context())
			if err != nil || seen[id] {
				t.Fatalf("%v twice, or %v", id, err)
			}
			seen[id] = true
		}
	}
}
