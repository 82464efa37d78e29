package backend_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// A store whose client is a map keeps its registers as text. It returns the client's errors with their kind, the
// call and the key.
func ExampleCalls() {
	texts := map[string]string{"motd": "hello"}
	errDown := errors.New("connection reset")
	calls := backend.NewCalls("mapstore", backend.NewLanes(0), func(err error) (hint string, kind error) {
		return "", store.ErrUnavailable
	}, "maps.example:70")

	ctx := context.Background()
	e, err := calls.Swap(ctx, "greeting", []byte("good evening"), func(_ context.Context, e store.Entry) (life string, err error) {
		texts[e.Key] = backend.Encode(e.Revision, e.Value)
		return "", nil
	})
	fmt.Println(e.Key, err)
	get := func(key string) {
		e, err := calls.Get(ctx, key, func(context.Context) (store.Entry, error) {
			if key == "far" {
				return store.Entry{}, errDown
			}
			return backend.Decode(key, texts[key], "map")
		})
		fmt.Printf("%s, %v\n", e.Value, err)
	}
	get("greeting")
	get("motd") // not Firn's
	get("far")
	// Output:
	// greeting <nil>
	// good evening, <nil>
	// , mapstore: get "motd": refused: "motd" was not written by Firn, or does not begin with 16 lower-case hexadecimal digits other than 0: use another map, or correct it
	// , mapstore: get "far": unavailable: server maps.example:70: connection reset
}
