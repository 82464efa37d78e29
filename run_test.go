package firn_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/firn-id/firn"
)

func TestARunIsAnArrayInJSON(t *testing.T) {
	g, err := firn.New(7, firn.Config{})
	if err != nil {
		t.Fatal(err)
	}
	run, err := g.Take(context.Background(), 5000) // over more than one tick
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []firn.Run{{}, run} {
		text, err := json.Marshal(struct{ IDs firn.Run }{run})
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ IDs []firn.ID }
		if err := json.Unmarshal(text, &got); err != nil || !slices.Equal(got.IDs, slices.Collect(run.All())) || got.IDs == nil {
			t.Errorf("a run of %d ids came back as %d: %v", run.Len(), len(got.IDs), err)
		}
	}
}
