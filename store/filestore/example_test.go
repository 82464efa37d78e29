package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
)

// Two handles, as two processes of this machine have them.
func Example() {
	temporary, err := os.MkdirTemp("", "firn")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(temporary)
	ctx := context.Background()
	folder := filepath.Join(temporary, "store")

	_, err = filestore.Open(folder) // creates nothing
	fmt.Println("no store:", errors.Is(err, store.ErrNotFound))

	one, err := filestore.Create(folder)
	if err != nil {
		log.Fatal(err)
	}
	defer one.Close()
	other, err := filestore.Open(folder)
	if err != nil {
		log.Fatal(err)
	}
	defer other.Close()

	written, err := one.CompareAndSwap(ctx, "greeting", 0, []byte("hello"))
	if err != nil {
		log.Fatal(err)
	}
	read, err := other.Get(ctx, "greeting")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, the same write: %v\n", read.Value, read.Revision == written.Revision)
	// Output:
	// no store: true
	// hello, the same write: true
}
